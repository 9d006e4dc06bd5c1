"""Work that outlives its asker, and tells how far it is to whoever listens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

P = TypeVar("P")
R = TypeVar("R")

EVERY = 0.5
"""Seconds between two words about the progress."""


async def outliving(
    group: TaskGroup, work: Callable[[Callable[[P], None]], Awaitable[R]]
) -> AsyncIterator[P | R]:
    """The latest progress of ``work``, now and then, and at last what came of it; raises what the work raised.

    The work belongs to ``group``: it goes on when nobody listens any more. It may tell of its progress in any thread.
    """
    errand = _Errand[P, R]()
    group.start_soon(errand.run, work)
    async for progress in errand.told():
        yield progress
    yield errand.result()


class _Errand(Generic[P, R]):
    """One piece of work."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._latest: P | None = None
        self._outcome: list[R] = []
        self._error: Exception | None = None

    async def run(self, work: Callable[[Callable[[P], None]], Awaitable[R]]) -> None:
        """Do the work; what it raises is kept for the asker."""
        try:
            self._outcome.append(await work(self._tell))
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def _tell(self, progress: P) -> None:
        self._latest = progress

    async def told(self) -> AsyncIterator[P]:
        """The latest progress, now and then, until the work is done."""
        while not self._done.is_set():
            with anyio.move_on_after(EVERY):
                await self._done.wait()
            if not self._done.is_set() and self._latest is not None:
                yield self._latest

    def result(self) -> R:
        """What came of it."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]
