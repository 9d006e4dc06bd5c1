"""The endpoints of history: history, blame, diff, revert, and the check for damage."""

from trunkline.contracts.memory.check import CheckMemory, MemoryCheckReport
from trunkline.contracts.memory.history import (
    BlameMemory,
    DiffMemory,
    MemoryBlame,
    MemoryChanges,
    MemoryDifference,
    MemoryHistory,
    MemoryReverted,
    RevertMemory,
)
from trunkline.contracts.memory.store import MemoryStore
from trunkline.contracts.memory.subjects import (
    MEMORY_BLAME,
    MEMORY_CHECK,
    MEMORY_DIFF,
    MEMORY_HISTORY,
    MEMORY_REVERT,
)
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry, scope_of
from trunkline_bus import Request


class HistoryHandlers:
    """Answers requests from a store's history."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_HISTORY, self._history)
        await endpoints.add(MEMORY_BLAME, self._blame)
        await endpoints.add(MEMORY_DIFF, self._diff)
        await endpoints.add(MEMORY_CHECK, self._check)
        await endpoints.add(MEMORY_REVERT, self._revert)

    async def _history(self, request: Request[MemoryHistory]) -> MemoryChanges:
        found = await self._store.history(request.data.path, limit=request.data.limit)
        return MemoryChanges(changes=found)

    async def _blame(self, request: Request[BlameMemory]) -> MemoryBlame:
        command = request.data
        return await self._store.blame(
            command.path, command.version, first=command.first, last=command.last, mainline=command.mainline
        )

    async def _diff(self, request: Request[DiffMemory]) -> MemoryDifference:
        return await self._store.diff(request.data.path, request.data.old, request.data.new)

    async def _check(self, request: Request[CheckMemory]) -> MemoryCheckReport:
        return MemoryCheckReport(findings=tuple(await self._store.check(repair=request.data.repair)))

    async def _revert(self, request: Request[RevertMemory]) -> MemoryReverted:
        return await self._store.revert(request.data, scope=scope_of(request))
