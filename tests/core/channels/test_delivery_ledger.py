"""The delivery ledger, with a service in memory that can find its posts, and on the records of a real bus."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.support.buses import bus_at
from trunkline.api.channel import (
    DeliveryLedger,
    DeliveryState,
    PostRefused,
    PostService,
    RecordChanged,
    UnfinishedPost,
)
from trunkline.api.testing import PostSuite, PostWitness, ScriptedRecords
from trunkline.contracts.channels.records_client import BusChannelRecords

pytestmark = pytest.mark.anyio


class Board(PostService):
    """A service that numbers its posts and can be asked for the newest one."""

    def __init__(self) -> None:
        self.posts: defaultdict[str, list[str]] = defaultdict(list)
        self.fails: Exception | None = None
        self.fails_after: Exception | None = None
        self.running = 0
        self.slow = 0

    def mark(self, place: str) -> str:
        return str(len(self.posts[place]))

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        self.running += 1
        assert self.running == 1 or place != "one at a time"
        await anyio.lowlevel.checkpoint()
        self.running -= 1
        if self.fails is not None:
            raise self.fails
        self.posts[place].append(content)
        if self.fails_after is not None:
            raise self.fails_after
        return str(len(self.posts[place]))

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        slow, self.slow = self.slow, 0
        for _ in range(slow):
            await anyio.lowlevel.checkpoint()
        count = len(self.posts[place])
        return str(count) if count > int(post.mark) else None


class TestBoard(PostSuite):
    """No crash loses or repeats a post."""

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PostWitness]:
        board = Board()
        yield PostWitness(board, "hall", lambda: board.posts["hall"], file="file")


async def test_a_post_whose_outcome_is_unknown_is_looked_for_first() -> None:
    """After a timeout the same call finds the post that was sent, and sends the one that was not."""
    board, records = Board(), ScriptedRecords()
    delivery = await DeliveryLedger(records, "a", board).open(DeliveryState(id="1", place="hall"))
    board.fails_after = TimeoutError()
    with pytest.raises(TimeoutError):
        await delivery.post("hello")
    board.fails_after, board.fails = None, TimeoutError()
    assert await delivery.post("hello") == "1"
    with pytest.raises(TimeoutError):
        await delivery.post("again")
    board.fails = None
    assert await delivery.post("again") == "2"
    assert board.posts["hall"] == ["hello", "again"]


async def test_another_delivery_to_the_place_settles_the_unfinished_post() -> None:
    """What a crash left open is settled before anything else is sent there, so that it is not mistaken for it."""
    board, records = Board(), ScriptedRecords()
    first = await DeliveryLedger(records, "a", board).open(DeliveryState(id="1", place="hall"))
    board.fails_after = TimeoutError()
    with pytest.raises(TimeoutError):
        await first.post("hello")
    board.fails_after = None
    ledger = DeliveryLedger(records, "a", board)
    (left,) = await ledger.recover()
    other = await ledger.open(DeliveryState(id="2", place="hall"))
    assert await other.post("news") == "2"
    assert left.state.posts == ("1",) and left.state.unfinished is None


async def test_a_post_that_waits_for_another_to_settle_it_is_not_repeated() -> None:
    """After a start two deliveries go on at once, and the first of them settles the unfinished post of the second."""
    board = Board()
    ledger = DeliveryLedger(ScriptedRecords(), "account", board)
    one = await ledger.open(DeliveryState(id="one", place="hall"))
    other = await ledger.open(DeliveryState(id="other", place="hall"))
    board.fails_after = TimeoutError()
    with pytest.raises(TimeoutError):
        await one.post("first")
    board.fails_after = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other.post, "second")
        tasks.start_soon(one.post, "first")
    assert board.posts["hall"] == ["first", "second"]
    assert (one.state.posts, other.state.posts) == (("1",), ("2",))


async def test_nothing_is_sent_to_a_place_while_a_post_is_looked_for_there() -> None:
    """A delivery that is given up is settled beside another that goes on: the later post is not taken for it."""
    board = Board()
    ledger = DeliveryLedger(ScriptedRecords(), "account", board)
    given_up = await ledger.open(DeliveryState(id="one", place="hall"))
    other = await ledger.open(DeliveryState(id="other", place="hall"))
    board.fails = TimeoutError()
    with pytest.raises(TimeoutError):
        await given_up.post("the same words")
    board.fails, board.slow = None, 100
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(given_up.settle)
        tasks.start_soon(other.post, "the same words")
    assert (given_up.state.posts, other.state.posts) == ((), ("1",))


async def test_a_refused_post_leaves_nothing_open() -> None:
    """A refusal is certain: nothing is looked for, and the next post is sent."""
    board = Board()
    delivery = await DeliveryLedger(ScriptedRecords(), "a", board).open(DeliveryState(id="1", place="hall"))
    board.fails = PostRefused("No.")
    with pytest.raises(PostRefused):
        await delivery.post("hello")
    assert delivery.state.unfinished is None
    board.fails = None
    assert await delivery.post("hello") == "1"


async def test_posts_to_one_place_are_sent_one_after_another() -> None:
    """Two deliveries to one chat never have an unfinished post each."""
    board, records = Board(), ScriptedRecords()
    ledger = DeliveryLedger(records, "a", board)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            delivery = await ledger.open(DeliveryState(id=str(number), place="one at a time"))
            tasks.start_soon(delivery.post, str(number))
    assert sorted(board.posts["one at a time"]) == list("01234")


async def test_a_former_process_cannot_go_on_with_a_delivery(tmp_path: Path) -> None:
    """The record's revision is the fence: who did not write it last sends nothing more, on a real bus."""
    async with bus_at(tmp_path) as bus:
        board, records = Board(), BusChannelRecords(bus, "board")
        former = await DeliveryLedger(records, "a", board).open(DeliveryState(id="1", place="hall"))
        (current,) = await DeliveryLedger(records, "a", board).recover()
        await current.post("from the new one")
        with pytest.raises(RecordChanged):
            await former.post("from the former one")
        await current.finish()
        assert board.posts["hall"] == ["from the new one"]
        assert await DeliveryLedger(records, "a", board).recover() == []
        again = await DeliveryLedger(records, "a", board).open(DeliveryState(id="1", place="hall"))
        assert again.state.done and again.state.posts == ("1",)
