"""Blocks as folders of memory: reads and writes them, and clears ``BlockCache`` after each change."""

from collections.abc import Iterable, Mapping

from trunkline.contracts.blocks.availability import block_not_found
from trunkline.contracts.blocks.paths import block_file_path, is_block_name
from trunkline.contracts.memory.files import (
    DeleteMemory,
    ListMemory,
    MemoryEntry,
    MemoryFile,
    MoveMemory,
    ReadManyMemory,
    WriteManyMemory,
)
from trunkline.contracts.memory.history import MemoryHistory
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
    """Reads and writes blocks in memory.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(self, bus: Bus, cache: BlockCache) -> None:
        self._bus = bus
        self._cache = cache

    async def file(self, name: str) -> MemoryFile | None:
        """Return a block's ``block.toml``, or None when the block does not exist."""
        return next(iter(await self.files([name])), None) if is_block_name(name) else None

    async def require_file(self, name: str) -> MemoryFile:
        """Return a block's ``block.toml``. Refused with ``not_found`` when the block does not exist."""
        file = await self.file(name)
        if file is None:
            raise unknown_block_error(name)
        return file

    async def files(self, names: Iterable[str]) -> tuple[MemoryFile, ...]:
        """Return the ``block.toml`` of those blocks that exist."""
        return await self.read(*map(block_file_path, names))

    async def read(self, *paths: str) -> tuple[MemoryFile, ...]:
        """Return those of the files that exist."""
        return (await self._bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files if paths else ()

    async def entries(self, folder: str) -> tuple[MemoryEntry, ...]:
        """Return the entries of a folder. A folder that does not exist has none."""
        try:
            return (await self._bus.call(MEMORY_LIST, ListMemory(path=folder))).entries
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return ()
            raise

    async def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder."""
        return [entry_name(entry) for entry in await self.entries(folder) if entry.kind == "folder"]

    async def has_history(self, name: str) -> bool:
        """Report whether memory's history has a block of this name."""
        try:
            request = MemoryHistory(path=block_file_path(name), limit=1)
            return bool((await self._bus.call(MEMORY_HISTORY, request, timeout=MEMORY_TIMEOUT)).changes)
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return False
            raise

    async def write(
        self, files: Mapping[str, str], expected: Mapping[str, str], actor: str, reason: str
    ) -> None:
        """Write files in one commit, provided that those in ``expected`` still have the given hashes."""
        request = WriteManyMemory(files=dict(files), expected=dict(expected), actor=actor, reason=reason)
        await self._bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)
        self._cache.clear()

    async def move(self, source: str, target: str, actor: str, reason: str) -> None:
        """Move a folder."""
        request = MoveMemory(source=source, target=target, actor=actor, reason=reason)
        await self._bus.call(MEMORY_MOVE, request, timeout=MEMORY_TIMEOUT)
        self._cache.clear()

    async def delete(self, path: str, actor: str, reason: str) -> None:
        """Delete a file or a folder."""
        request = DeleteMemory(path=path, actor=actor, reason=reason)
        await self._bus.call(MEMORY_DELETE, request, timeout=MEMORY_TIMEOUT)
        self._cache.clear()


def unknown_block_error(name: str) -> Refusal:
    """Return the refusal for a block that does not exist."""
    return refusal(ErrorCode.NOT_FOUND, block_not_found(name))


def entry_name(entry: MemoryEntry) -> str:
    """Return the last part of an entry's path."""
    return entry.path.rsplit("/", 1)[-1]
