"""Work that outlives its asker, and tells how far it is to whoever listens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

import anyio

P = TypeVar("P")
R = TypeVar("R")

EVERY = 0.5
"""Seconds between two words about the progress."""


class Errand(Generic[P, R]):
    """One piece of work. ``tell`` may be called in any thread."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._latest: P | None = None
        self._outcome: list[R] = []
        self._error: Exception | None = None

    def tell(self, progress: P) -> None:
        """How far it is now."""
        self._latest = progress

    async def run(self, work: Callable[[], Awaitable[R]]) -> None:
        """Do the work; what it raises is kept for the asker."""
        try:
            self._outcome.append(await work())
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    async def told(self) -> AsyncIterator[P]:
        """The latest progress, now and then, until the work is done."""
        while not self._done.is_set():
            with anyio.move_on_after(EVERY):
                await self._done.wait()
            if not self._done.is_set() and self._latest is not None:
                yield self._latest

    def result(self) -> R:
        """What came of it. Raises what the work raised."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]
