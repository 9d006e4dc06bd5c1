"""The endpoints that maintain memory: index statistics, rebuilding the index, and purges."""

from collections.abc import AsyncIterator, Callable

from trunkline.contracts.memory.index import GetIndexStats, IndexProgress, IndexStats, RebuildIndex
from trunkline.contracts.memory.purge import MemoryPurged, PurgeMemory
from trunkline.contracts.memory.store import MemoryStore
from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS, MEMORY_PURGE, MEMORY_REINDEX
from trunkline.workers.memory.background_jobs import BackgroundJobs
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry, scope_of
from trunkline.workers.memory.purge.service import PurgeService
from trunkline_bus import BusError, Refusal, Request


class IndexHandlers:
    """Answers requests from a store. ``jobs`` runs long work."""

    def __init__(self, store: MemoryStore, jobs: BackgroundJobs) -> None:
        self._store = store
        self._jobs = jobs

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_INDEX_STATS, self._stats)
        await endpoints.add_stream(MEMORY_REINDEX, self._reindex)

    async def _stats(self, request: Request[GetIndexStats]) -> IndexStats:
        return await self._store.index_stats()

    def _reindex(self, request: Request[RebuildIndex]) -> AsyncIterator[IndexProgress | IndexStats]:
        async def work(on_progress: Callable[[IndexProgress], None]) -> IndexStats:
            return await self._store.reindex(on_progress, vectors=request.data.vectors)

        return self._jobs.run_detached(work)


class PurgeHandlers:
    """Answers requests with the purge service. Only one purge runs at a time."""

    def __init__(self, purges: PurgeService) -> None:
        self._purges = purges

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_PURGE, self._purge)

    async def _purge(self, request: Request[PurgeMemory]) -> MemoryPurged:
        try:
            return await self._purges.purge(request.data, scope_of(request))
        except (BusError, OSError) as error:
            raise Refusal(
                "unfinished",
                f"The purge could not be finished: {error}. Request it again: it continues where it stopped.",
            ) from error
