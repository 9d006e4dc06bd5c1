"""The contract of a ``PostService``: no crash loses or repeats a post.

::

    from contextlib import asynccontextmanager

    from trunkline.api.testing import PostSuite, PostWitness

    class TestDoorbellPosts(PostSuite):
        @asynccontextmanager
        async def service(self):
            bell = BellServer()
            yield PostWitness(BellPosts(bell), place="hall", seen=lambda: bell.shown("hall"))

The suite ends the process, as far as the service and the records can tell, between each pair of steps of a post.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import pytest

from trunkline.testing.contract_suite import ContractSuite
from trunkline.testing.scripted_records import ScriptedRecords
from trunkline.workers.channels.delivery_ledger import (
    DeliveryLedger,
    DeliveryState,
    PostService,
    UnfinishedPost,
)

STEPS = (
    "before the delivery is recorded",
    "before the intention is recorded",
    "before the post is sent",
    "after the post is sent",
    "after the result is recorded",
)
"""Where the process ends."""


@dataclass(frozen=True, slots=True)
class PostWitness:
    """A service, and what people see there: ``seen`` returns the texts of all posts in ``place``, the oldest first, and
    ``file`` for a post that shows a file. ``file`` is the content of such a post, as the service takes it; "" if it has
    none.
    """

    service: PostService
    place: str
    seen: Callable[[], Sequence[str]]
    file: str = ""


class PostSuite(ContractSuite, ABC):
    """Inherit from this class and implement ``service``; pytest runs the tests."""

    @abstractmethod
    def service(self) -> AbstractAsyncContextManager[PostWitness]:
        """Yield the service with nothing in it."""

    @pytest.mark.anyio
    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("earlier", [0, 1])
    async def test_a_crash_neither_loses_nor_repeats_a_post(self, step: str, earlier: int) -> None:
        """A process that ends between two steps of a post leaves one post behind when the next process goes on, also
        behind an earlier post with the same text.
        """
        wanted = ["the same words"] * (earlier + 1)
        async with self.service() as witness:
            records = ScriptedRecords()
            ending = _Ending(witness.service)
            ledger = DeliveryLedger(records, "account", ending)
            delivery = None
            if step != STEPS[0]:
                delivery = await ledger.open(DeliveryState(id="answer", place=witness.place))
            for content in wanted[:earlier]:
                assert delivery is None or await delivery.post(content)
            with pytest.raises(_ProcessEnded):
                ending.prepare(step, records)
                delivery = await ledger.open(DeliveryState(id="answer", place=witness.place))
                await delivery.post(wanted[-1])
                await delivery.finish()
            records.before_write = lambda key: None
            await _go_on(DeliveryLedger(records, "account", witness.service), witness.place, wanted)
            assert list(witness.seen()) == wanted
            await _go_on(DeliveryLedger(records, "account", witness.service), witness.place, wanted)
            assert list(witness.seen()) == wanted

    @pytest.mark.anyio
    @pytest.mark.parametrize("step", STEPS[1:])
    @pytest.mark.parametrize("earlier", [0, 1])
    async def test_a_crash_neither_loses_nor_repeats_a_file(self, step: str, earlier: int) -> None:
        """The same for a post that shows a file, behind the text and behind an earlier post with the same file."""
        async with self.service() as witness:
            if not witness.file:
                pytest.skip("this service sends no files")
            files = [witness.file] * (earlier + 1)
            wanted = ["the words", *(["file"] * len(files))]
            records = ScriptedRecords()
            ending = _Ending(witness.service)
            delivery = await DeliveryLedger(records, "account", ending).open(
                DeliveryState(id="answer", place=witness.place)
            )
            await delivery.post(wanted[0])
            for number, content in enumerate(files[:earlier]):
                await delivery.post_file(number, content)
            with pytest.raises(_ProcessEnded):
                ending.prepare(step, records)
                await delivery.post_file(earlier, files[-1])
                await delivery.finish()
            records.before_write = lambda key: None
            for _ in range(2):
                ledger = DeliveryLedger(records, "account", witness.service)
                await _go_on(ledger, witness.place, wanted[:1], files)
                assert list(witness.seen()) == wanted


async def _go_on(
    ledger: DeliveryLedger, place: str, wanted: Sequence[str], files: Sequence[str] = ()
) -> None:
    """Do what a channel does when it starts, and when its service delivers the same message again."""
    await ledger.recover()
    delivery = await ledger.open(DeliveryState(id="answer", place=place))
    while not delivery.state.done:
        if len(delivery.state.posts) < len(wanted):
            await delivery.post(wanted[len(delivery.state.posts)])
        elif len(delivery.state.files) < len(files):
            number = len(delivery.state.files)
            await delivery.post_file(number, files[number])
        else:
            await delivery.finish()


class _ProcessEnded(BaseException):
    """The process ended: not an error that the code under test could handle."""


class _Ending(PostService):
    """A service whose client ends at a step. From then on it writes no record and sends nothing."""

    def __init__(self, service: PostService) -> None:
        self._service = service
        self._step = ""

    def prepare(self, step: str, records: ScriptedRecords) -> None:
        self._step = step
        writes = {STEPS[0]: 0, STEPS[1]: 0, STEPS[4]: 2}.get(step)
        if writes is not None:
            self._end_after(records, writes)

    def _end_after(self, records: ScriptedRecords, writes: int) -> None:
        left = writes

        def before_write(key: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise _ProcessEnded

        records.before_write = before_write

    def mark(self, place: str) -> str:
        return self._service.mark(place)

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        if self._step == STEPS[2]:
            raise _ProcessEnded
        id = await self._service.post(place, content, delivery)
        if self._step == STEPS[3]:
            raise _ProcessEnded
        return id

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        return await self._service.find(place, post, delivery)
