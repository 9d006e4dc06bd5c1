"""Blocks as folders of memory: what is read of them and written into them. ``BlockCache`` is told of each change."""

from collections.abc import Iterable, Mapping

from trunkline.contracts.blocks.availability import block_not_found
from trunkline.contracts.blocks.paths import block_file_path, is_block_name
from trunkline.contracts.memory.messages import (
    DeleteMemory,
    ListMemory,
    MemoryEntry,
    MemoryFile,
    MemoryHistory,
    MoveMemory,
    ReadManyMemory,
    WriteManyMemory,
)
from trunkline.contracts.memory.subjects import (
    MEMORY_DELETE,
    MEMORY_HISTORY,
    MEMORY_LIST,
    MEMORY_MOVE,
    MEMORY_READ_MANY,
    MEMORY_WRITE_MANY,
)
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.errors import refusal
from trunkline_bus import Bus, Refusal, RemoteFault

MEMORY_TIMEOUT = 20.0


class BlockStore:
    """Raises Refusal with a fixed code, and BusError when memory does not answer."""

    def __init__(self, bus: Bus, known: BlockCache) -> None:
        self._bus = bus
        self._known = known

    async def file(self, name: str) -> MemoryFile | None:
        """A block's ``block.toml``; None for a block that is not there."""
        return next(iter(await self.files([name])), None) if is_block_name(name) else None

    async def require_file(self, name: str) -> MemoryFile:
        """A block's ``block.toml``. Refused with ``not_found``."""
        file = await self.file(name)
        if file is None:
            raise unknown_block_error(name)
        return file

    async def files(self, names: Iterable[str]) -> tuple[MemoryFile, ...]:
        """Those of the blocks that there are."""
        return await self.read(*map(block_file_path, names))

    async def read(self, *paths: str) -> tuple[MemoryFile, ...]:
        """Those of the files that there are."""
        return (await self._bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files if paths else ()

    async def entries(self, folder: str) -> tuple[MemoryEntry, ...]:
        """What lies in a folder; nothing where there is none."""
        try:
            return (await self._bus.call(MEMORY_LIST, ListMemory(path=folder))).entries
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return ()
            raise

    async def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        return [entry_name(entry) for entry in await self.entries(folder) if entry.kind == "folder"]

    async def has_history(self, name: str) -> bool:
        """Report whether history knows a block of this name."""
        try:
            wish = MemoryHistory(path=block_file_path(name), limit=1)
            return bool((await self._bus.call(MEMORY_HISTORY, wish, timeout=MEMORY_TIMEOUT)).changes)
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return False
            raise

    async def write(
        self, files: Mapping[str, str], expected: Mapping[str, str], actor: str, reason: str
    ) -> None:
        """Write files in one commit."""
        wish = WriteManyMemory(files=dict(files), expected=dict(expected), actor=actor, reason=reason)
        await self._bus.call(MEMORY_WRITE_MANY, wish, timeout=MEMORY_TIMEOUT)
        self._known.clear()

    async def move(self, source: str, target: str, actor: str, reason: str) -> None:
        """Move a folder."""
        wish = MoveMemory(source=source, target=target, actor=actor, reason=reason)
        await self._bus.call(MEMORY_MOVE, wish, timeout=MEMORY_TIMEOUT)
        self._known.clear()

    async def delete(self, path: str, actor: str, reason: str) -> None:
        """Delete a file or a folder."""
        wish = DeleteMemory(path=path, actor=actor, reason=reason)
        await self._bus.call(MEMORY_DELETE, wish, timeout=MEMORY_TIMEOUT)
        self._known.clear()


def unknown_block_error(name: str) -> Refusal:
    """What is said of a block that is not there."""
    return refusal(ErrorCode.NOT_FOUND, block_not_found(name))


def entry_name(entry: MemoryEntry) -> str:
    """The last part of its path."""
    return entry.path.rsplit("/", 1)[-1]
