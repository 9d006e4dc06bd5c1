"""The block files that every message is checked against, remembered until memory tells of a change.

Only what is there is remembered, so a block that was just made is found at once.
"""

from collections.abc import Callable

import anyio

from trunkline.messages.memory import MemoryChanged, MemoryFile, ReadManyMemory
from trunkline.subjects import MEMORY_CHANGED, MEMORY_READ_MANY
from trunkline_bus import Bus, Received

FRESH_FOR = 30.0
"""Seconds after which what is known is read again, in case a change was missed."""


class KnownBlocks:
    """Finds block files. ``open`` before use."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[str, tuple[float, MemoryFile]] = {}
        self._changes = 0
        self._undo: Callable[[], None] | None = None

    async def open(self) -> None:
        """Listen for changes from now on."""
        await self._bus.subscribe(MEMORY_CHANGED, self._changed, limit=1)
        self._undo = self._bus.on_reconnect(self._reconnected)

    def close(self) -> None:
        """Stop watching for reconnections; the subscription ends with the bus."""
        if self._undo is not None:
            self._undo()

    async def file(self, block: str) -> MemoryFile | None:
        """A block's ``block.toml``; None when there is no such block. Raises BusError when memory does not answer."""
        path = path_of(block)
        at, known = self._known.get(path, (0.0, None))
        if known is not None and anyio.current_time() - at < FRESH_FOR:
            return known
        changes = self._changes
        wish = ReadManyMemory(paths=(path,))
        reply = await self._bus.call(MEMORY_READ_MANY, wish, timeout=10.0, repeatable=True)
        found = next(iter(reply.files), None)
        if found is not None and changes == self._changes:
            self._known[path] = (anyio.current_time(), found)
        return found

    def forget(self) -> None:
        """Blocks were changed: nothing that is known counts any more."""
        self._changes += 1
        self._known.clear()

    async def _changed(self, message: Received[MemoryChanged]) -> None:
        if any(path.endswith("block.toml") for path in message.data.paths):
            self.forget()

    async def _reconnected(self) -> None:
        self.forget()


def path_of(block: str) -> str:
    """Where a block's choices lie in memory."""
    return f"blocks/{block}/block.toml"
