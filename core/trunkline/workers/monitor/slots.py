"""Slots for running turns, and the order of the turns that wait for one."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio


class TurnSlot:
    """The slot of one turn, which the turn may free while it waits."""

    def __init__(self, take: Callable[[], Awaitable[None]], release: Callable[[], None]) -> None:
        self._take = take
        self._release = release
        self._held = False

    async def take(self) -> None:
        """Wait for a slot."""
        await self._take()
        self._held = True

    def release(self) -> None:
        """Free the slot, unless the turn has freed it already."""
        if self._held:
            self._held = False
            self._release()

    async def wait_without(self, wait: Callable[[], Awaitable[None]]) -> None:
        """Free the slot while ``wait`` runs, then wait for a slot again."""
        self.release()
        await wait()
        await self.take()


class TurnSlots:
    """``limit`` slots, one for each running turn.

    A free slot goes first to the turns that had already started and lost their monitor, because their users have part
    of an answer. Within each group, turns run in the order in which they began to wait.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._started: deque[anyio.Event] = deque()
        self._others: deque[anyio.Event] = deque()

    @asynccontextmanager
    async def acquire(self, has_started: Callable[[], Awaitable[bool]]) -> AsyncIterator["TurnSlot"]:
        """Hold a slot within the context. ``has_started`` reports whether the turn had started; it is called only when
        no slot is free."""
        slot = TurnSlot(partial(self._take, has_started), self._release)
        await slot.take()
        try:
            yield slot
        finally:
            slot.release()

    async def _take(self, has_started: Callable[[], Awaitable[bool]]) -> None:
        waiting = self._others
        if not self._free and await has_started():
            waiting = self._started
        if self._free:  # while a slot is free, no turn waits
            self._free -= 1
            return
        granted = anyio.Event()
        waiting.append(granted)
        try:
            await granted.wait()
        except anyio.get_cancelled_exc_class():
            if granted.is_set():
                self._release()
            else:
                waiting.remove(granted)
            raise

    def _release(self) -> None:
        for waiting in (self._started, self._others):
            if waiting:
                return waiting.popleft().set()
        self._free += 1
