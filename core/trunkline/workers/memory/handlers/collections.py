"""The endpoints of collections."""

from collections.abc import Callable

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
    MEMORY_COLLECT,
    MEMORY_COLLECTED,
    MEMORY_COLLECTED_CLEAR,
    MEMORY_COLLECTED_SEARCH,
)
from trunkline.workers.memory.document_collections.collection_store import Collections
from trunkline.workers.memory.handlers.endpoints import Endpoints
from trunkline_bus import Request


class CollectionAnswers:
    """Answers from ``collections``. ``redact`` takes secrets out of what comes in (conflict C13)."""

    def __init__(self, collections: Collections, redact: Callable[[str], str]) -> None:
        self._collections = collections
        self._redact = redact

    async def serve(self, endpoints: Endpoints) -> None:
        """Answer from now on."""
        await endpoints.ask(MEMORY_COLLECT, self._collect)
        await endpoints.ask(MEMORY_COLLECTED, self._collected)
        await endpoints.ask(MEMORY_COLLECTED_SEARCH, self._search)
        await endpoints.ask(MEMORY_COLLECTED_CLEAR, self._clear)

    async def _collect(self, request: Request[CollectDocument]) -> CollectedDocuments:
        wish = request.data
        await self._collections.put(wish.conversation, wish.name, self._redact(wish.text))
        return CollectedDocuments(documents=await self._collections.documents(wish.conversation))

    async def _collected(self, request: Request[ListCollected]) -> CollectedDocuments:
        return CollectedDocuments(documents=await self._collections.documents(request.data.conversation))

    async def _search(self, request: Request[SearchCollected]) -> Excerpts:
        wish = request.data
        found = await self._collections.search(wish.conversation, wish.query, max(1, wish.limit))
        return Excerpts(excerpts=found)

    async def _clear(self, request: Request[ClearCollected]) -> CollectionCleared:
        return CollectionCleared(documents=await self._collections.clear(request.data.conversation))
