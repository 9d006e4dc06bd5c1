"""The chunk endpoints of the memory worker. Takes requests apart and answers them; decides nothing."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from trunkline.memory.chunks.keeper import Keeper
from trunkline.memory.chunks.reader import Reader
from trunkline.messages.chunks import (
    ChunkCounts,
    ChunkFound,
    ChunkPage,
    ChunksLinked,
    ChunksPruned,
    CountChunks,
    DeleteChunk,
    FindLinked,
    ForgetChunk,
    GetChunk,
    LinkChunks,
    ListChunks,
    MemoryPurged,
    PruneChunks,
    PurgeMemory,
    Recall,
    Recalled,
    Remember,
    Remembered,
    RestoreChunk,
    UpdateChunk,
)
from trunkline.messages.memory import MemoryChanged
from trunkline.subjects import (
    MEMORY_CHUNK,
    MEMORY_CHUNK_STATS,
    MEMORY_CHUNKS,
    MEMORY_DELETE_CHUNK,
    MEMORY_FORGET,
    MEMORY_LINK,
    MEMORY_LINKED,
    MEMORY_PRUNE,
    MEMORY_PURGE,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_RESTORE_CHUNK,
    MEMORY_UPDATE_CHUNK,
)
from trunkline_bus import Request, Scope

Q = TypeVar("Q")
A = TypeVar("A")

Answer = Callable[[Request[Any]], Awaitable[Any]]


class ChunkAnswers:
    """Answers with a reader and a keeper."""

    def __init__(self, reader: Reader, keeper: Keeper) -> None:
        self._reader = reader
        self._keeper = keeper

    async def serve(
        self, add: Callable[..., Awaitable[object]], telling: Callable[[Answer], Answer], writers: int
    ) -> None:
        """Answer from now on. ``telling`` wraps what changes memory, so that it is told of."""
        await add(MEMORY_RECALL, self._recall)
        await add(MEMORY_CHUNK, self._get)
        await add(MEMORY_CHUNKS, self._page)
        await add(MEMORY_LINKED, self._linked)
        await add(MEMORY_CHUNK_STATS, self._counts)
        await add(MEMORY_REMEMBER, telling(self._remember), limit=writers)
        await add(MEMORY_LINK, telling(self._link), limit=writers)
        await add(MEMORY_UPDATE_CHUNK, telling(self._update), limit=writers)
        await add(MEMORY_DELETE_CHUNK, telling(self._delete), limit=writers)
        await add(MEMORY_RESTORE_CHUNK, telling(self._restore), limit=writers)
        await add(MEMORY_FORGET, telling(self._forget), limit=writers)
        await add(MEMORY_PRUNE, telling(self._prune), limit=1)
        await add(MEMORY_PURGE, telling(self._purge), limit=1)

    async def _recall(self, request: Request[Recall]) -> Recalled:
        return await self._reader.recall(request.data)

    async def _get(self, request: Request[GetChunk]) -> ChunkFound:
        return await self._reader.get(request.data)

    async def _page(self, request: Request[ListChunks]) -> ChunkPage:
        return await self._reader.page(request.data)

    async def _linked(self, request: Request[FindLinked]) -> ChunksLinked:
        return await self._reader.linked(request.data)

    async def _counts(self, request: Request[CountChunks]) -> ChunkCounts:
        return await self._reader.counts(request.data)

    async def _remember(self, request: Request[Remember]) -> Remembered:
        return await self._keeper.remember(request.data, scope_of(request))

    async def _link(self, request: Request[LinkChunks]) -> MemoryChanged:
        return await self._keeper.link(request.data, scope_of(request))

    async def _update(self, request: Request[UpdateChunk]) -> MemoryChanged:
        return await self._keeper.update(request.data, scope_of(request))

    async def _delete(self, request: Request[DeleteChunk]) -> MemoryChanged:
        return await self._keeper.delete(request.data, scope_of(request))

    async def _restore(self, request: Request[RestoreChunk]) -> MemoryChanged:
        return await self._keeper.restore(request.data, scope_of(request))

    async def _forget(self, request: Request[ForgetChunk]) -> MemoryChanged:
        return await self._keeper.forget(request.data, scope_of(request))

    async def _prune(self, request: Request[PruneChunks]) -> ChunksPruned:
        return await self._keeper.prune(request.data, scope_of(request))

    async def _purge(self, request: Request[PurgeMemory]) -> MemoryPurged:
        return await self._keeper.purge(request.data, scope_of(request))


def scope_of(request: Request[Any]) -> Scope:
    """Where a change belongs: what its request's envelope says."""
    envelope = request.envelope
    return Scope(block=envelope.block, conversation=envelope.conversation, turn=envelope.turn)
