"""The endpoints of conversations."""

from trunkline.contracts.conversations.branch import (
    ConversationBranches,
    FindBranches,
    find_branch_points,
)
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationFound,
    ConversationPage,
    ConversationSlice,
    FindConversation,
    ListConversations,
    LoadConversation,
)
from trunkline.contracts.memory.store import MemoryStore
from trunkline.contracts.memory.subjects import (
    MEMORY_APPEND_CONVERSATION,
    MEMORY_FIND_BRANCHES,
    MEMORY_FIND_CONVERSATION,
    MEMORY_LIST_CONVERSATIONS,
    MEMORY_LOAD_CONVERSATION,
)
from trunkline.workers.memory.conversation_family import load_family
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline_bus import Request


class ConversationHandlers:
    """Answers requests from a store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_APPEND_CONVERSATION, self._append)
        await endpoints.add(MEMORY_LOAD_CONVERSATION, self._load)
        await endpoints.add(MEMORY_LIST_CONVERSATIONS, self._page)
        await endpoints.add(MEMORY_FIND_CONVERSATION, self._find)
        await endpoints.add(MEMORY_FIND_BRANCHES, self._branches)

    async def _append(self, request: Request[AppendConversation]) -> ConversationAppended:
        return ConversationAppended(count=await self._store.append_conversation(request.data))

    async def _load(self, request: Request[LoadConversation]) -> ConversationSlice:
        command = request.data
        return await self._store.load_conversation(command.block, command.conversation, after=command.after)

    async def _page(self, request: Request[ListConversations]) -> ConversationPage:
        return await self._store.list_conversations(request.data)

    async def _find(self, request: Request[FindConversation]) -> ConversationFound:
        return ConversationFound(summary=await self._store.find_conversation(request.data.conversation))

    async def _branches(self, request: Request[FindBranches]) -> ConversationBranches:
        block, conversation = request.data.block, request.data.conversation
        summary = await self._store.find_conversation(conversation)
        if summary is None or summary.block != block:
            return ConversationBranches()
        family = await load_family(self._store, summary)
        if len(family) == 1:
            return ConversationBranches(family=(summary,))
        slices = {id: await self._store.load_conversation(block, id, after=0) for id in family}
        messages = {id: found.messages for id, found in slices.items() if found.exists}
        if conversation not in messages:  # it was purged meanwhile
            return ConversationBranches()
        return ConversationBranches(
            points=find_branch_points(conversation, messages),
            family=tuple(one for id, one in family.items() if id in messages),
        )
