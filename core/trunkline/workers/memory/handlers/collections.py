"""The endpoints of collected documents."""

from collections.abc import Callable

from trunkline.contracts.documents.collections import DocumentCollections
from trunkline.contracts.documents.messages import (
    ClearCollected,
    CollectDocument,
    CollectedDocuments,
    CollectionCleared,
    Excerpts,
    ListCollected,
    SearchCollected,
)
from trunkline.contracts.memory.subjects import (
    MEMORY_COLLECTION_ADD,
    MEMORY_COLLECTION_CLEAR,
    MEMORY_COLLECTION_LIST,
    MEMORY_COLLECTION_SEARCH,
)
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline_bus import Request


class CollectionHandlers:
    """Answers requests from ``collections``. ``redact`` redacts secrets in added texts."""

    def __init__(self, collections: DocumentCollections, redact: Callable[[str], str]) -> None:
        self._collections = collections
        self._redact = redact

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_COLLECTION_ADD, self._collect)
        await endpoints.add(MEMORY_COLLECTION_LIST, self._collected)
        await endpoints.add(MEMORY_COLLECTION_SEARCH, self._search)
        await endpoints.add(MEMORY_COLLECTION_CLEAR, self._clear)

    async def _collect(self, request: Request[CollectDocument]) -> CollectedDocuments:
        command = request.data
        await self._collections.put(command.conversation, command.name, self._redact(command.text))
        return CollectedDocuments(documents=await self._collections.documents(command.conversation))

    async def _collected(self, request: Request[ListCollected]) -> CollectedDocuments:
        return CollectedDocuments(documents=await self._collections.documents(request.data.conversation))

    async def _search(self, request: Request[SearchCollected]) -> Excerpts:
        command = request.data
        found = await self._collections.search(command.conversation, command.query, max(1, command.limit))
        return Excerpts(excerpts=found)

    async def _clear(self, request: Request[ClearCollected]) -> CollectionCleared:
        return CollectionCleared(documents=await self._collections.clear(request.data.conversation))
