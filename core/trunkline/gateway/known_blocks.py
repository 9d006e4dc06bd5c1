"""The block files that every message is checked against, remembered until memory tells of a change."""

from trunkline.messages.memory import MemoryFile, ReadManyMemory
from trunkline.runtime.known import Known
from trunkline.subjects import MEMORY_READ_MANY
from trunkline_bus import Bus

FRESH_FOR = 30.0
"""Seconds after which what is known is read again, in case a change was missed."""


class KnownBlocks(Known[MemoryFile | None]):
    """Finds block files. ``open`` before use."""

    def __init__(self, bus: Bus) -> None:
        async def read(block: str) -> MemoryFile | None:
            wish = ReadManyMemory(paths=(path_of(block),))
            reply = await bus.call(MEMORY_READ_MANY, wish, timeout=10.0, repeatable=True)
            return next(iter(reply.files), None)

        super().__init__(
            bus, read, counts=lambda path: path.rpartition("/")[2] == "block.toml", fresh_for=FRESH_FOR
        )


def path_of(block: str) -> str:
    """Where a block's choices lie in memory."""
    return f"blocks/{block}/block.toml"
