"""The endpoint of purges."""

from trunkline.contracts.memory.purge import MemoryPurged, PurgeMemory
from trunkline.contracts.memory.subjects import MEMORY_PURGE
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry, scope_of
from trunkline.workers.memory.purge.service import PurgeService
from trunkline_bus import BusError, Refusal, Request


class PurgeHandlers:
    """Answers with what purges; one at a time."""

    def __init__(self, purges: PurgeService) -> None:
        self._purges = purges

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Answer from now on."""
        await endpoints.add(MEMORY_PURGE, self._purge)

    async def _purge(self, request: Request[PurgeMemory]) -> MemoryPurged:
        try:
            return await self._purges.purge(request.data, scope_of(request))
        except (BusError, OSError) as error:
            raise Refusal(
                "unfinished",
                f"The purge could not be finished: {error}. Ask for it again: it goes on where it was.",
            ) from error
