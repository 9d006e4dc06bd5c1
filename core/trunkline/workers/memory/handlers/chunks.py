"""The endpoints of chunks."""

from trunkline.contracts.memory.chunks import (
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
    PruneChunks,
    Recall,
    RecallResult,
    Remember,
    RememberResult,
    RestoreChunk,
    UpdateChunk,
)
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import (
    MEMORY_CHUNK,
    MEMORY_CHUNK_STATS,
    MEMORY_CHUNKS,
    MEMORY_DELETE_CHUNK,
    MEMORY_FORGET,
    MEMORY_LINK,
    MEMORY_LINKED,
    MEMORY_PRUNE,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_RESTORE_CHUNK,
    MEMORY_UPDATE_CHUNK,
)
from trunkline.workers.memory.chunks.reader import ChunkReader
from trunkline.workers.memory.chunks.writer import ChunkWriter
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry, scope_of
from trunkline_bus import Request


class ChunkHandlers:
    """Answers requests with a ``ChunkReader`` and a ``ChunkWriter``."""

    def __init__(self, reader: ChunkReader, writer: ChunkWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_RECALL, self._recall)
        await endpoints.add(MEMORY_CHUNK, self._get)
        await endpoints.add(MEMORY_CHUNKS, self._page)
        await endpoints.add(MEMORY_LINKED, self._linked)
        await endpoints.add(MEMORY_CHUNK_STATS, self._counts)
        await endpoints.add(MEMORY_REMEMBER, self._remember)
        await endpoints.add(MEMORY_LINK, self._link)
        await endpoints.add(MEMORY_UPDATE_CHUNK, self._update)
        await endpoints.add(MEMORY_DELETE_CHUNK, self._delete)
        await endpoints.add(MEMORY_RESTORE_CHUNK, self._restore)
        await endpoints.add(MEMORY_FORGET, self._forget)
        await endpoints.add(MEMORY_PRUNE, self._prune)

    async def _recall(self, request: Request[Recall]) -> RecallResult:
        return await self._reader.recall(request.data)

    async def _get(self, request: Request[GetChunk]) -> ChunkFound:
        return await self._reader.get(request.data)

    async def _page(self, request: Request[ListChunks]) -> ChunkPage:
        return await self._reader.page(request.data)

    async def _linked(self, request: Request[FindLinked]) -> ChunksLinked:
        return await self._reader.linked(request.data)

    async def _counts(self, request: Request[CountChunks]) -> ChunkCounts:
        return await self._reader.counts(request.data)

    async def _remember(self, request: Request[Remember]) -> RememberResult:
        return await self._writer.remember(request.data, scope_of(request))

    async def _link(self, request: Request[LinkChunks]) -> MemoryChanged:
        return await self._writer.link(request.data, scope_of(request))

    async def _update(self, request: Request[UpdateChunk]) -> MemoryChanged:
        return await self._writer.update(request.data, scope_of(request))

    async def _delete(self, request: Request[DeleteChunk]) -> MemoryChanged:
        return await self._writer.delete(request.data, scope_of(request))

    async def _restore(self, request: Request[RestoreChunk]) -> MemoryChanged:
        return await self._writer.restore(request.data, scope_of(request))

    async def _forget(self, request: Request[ForgetChunk]) -> MemoryChanged:
        return await self._writer.forget(request.data, scope_of(request))

    async def _prune(self, request: Request[PruneChunks]) -> ChunksPruned:
        return await self._writer.prune(request.data, scope_of(request))
