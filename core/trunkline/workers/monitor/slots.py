"""How many turns run at once, and which of those that wait is next."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio


class TurnSlots:
    """``limit`` slots, one for each running turn.

    When one gets free, turns that had begun and lost their monitor go before those that nobody has begun: their people
    have seen half an answer. Among equals the first to wait is the first to run.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._begun: deque[anyio.Event] = deque()
        self._others: deque[anyio.Event] = deque()

    @asynccontextmanager
    async def acquire(self, begun: Callable[[], Awaitable[bool]]) -> AsyncIterator[None]:
        """Hold a slot. ``begun`` tells whether the turn had begun; it is asked only when there is no slot at once."""
        await self._take(begun)
        try:
            yield
        finally:
            self._release()

    async def _take(self, begun: Callable[[], Awaitable[bool]]) -> None:
        waiting = self._others
        if not self._free and await begun():
            waiting = self._begun
        if self._free:  # then nobody waits
            self._free -= 1
            return
        passed = anyio.Event()
        waiting.append(passed)
        try:
            await passed.wait()
        except anyio.get_cancelled_exc_class():
            if passed.is_set():
                self._release()
            else:
                waiting.remove(passed)
            raise

    def _release(self) -> None:
        for waiting in (self._begun, self._others):
            if waiting:
                return waiting.popleft().set()
        self._free += 1
