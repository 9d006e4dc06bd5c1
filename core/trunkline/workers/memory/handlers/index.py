"""The endpoints of the index: what it holds, and making it anew."""

from collections.abc import AsyncIterator, Callable

from trunkline.contracts.memory.index import GetIndexStats, IndexProgress, IndexStats, RebuildIndex
from trunkline.contracts.memory.store import MemoryStore
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_REINDEX
from trunkline.workers.memory.background_jobs import BackgroundJobs
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline_bus import Request


class IndexHandlers:
    """Answers from a store; ``errands`` is where long work is done."""

    def __init__(self, store: MemoryStore, jobs: BackgroundJobs) -> None:
        self._store = store
        self._jobs = jobs

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Answer from now on."""
        await endpoints.add(MEMORY_INDEX_STATS, self._stats)
        await endpoints.add_stream(MEMORY_REINDEX, self._reindex)

    async def _stats(self, request: Request[GetIndexStats]) -> IndexStats:
        return await self._store.index_stats()

    def _reindex(self, request: Request[RebuildIndex]) -> AsyncIterator[IndexProgress | IndexStats]:
        async def work(told: Callable[[IndexProgress], None]) -> IndexStats:
            return await self._store.reindex(told, vectors=request.data.vectors)

        return self._jobs.run_detached(work)
