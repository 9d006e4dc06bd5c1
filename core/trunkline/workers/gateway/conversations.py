"""The conversation service: the only way messages get into a conversation, and the views that people are given.

Messages are kept by the memory worker. A view is what is stored, plus what people said in turns that have not ended.
"""

from collections.abc import Iterable

import msgspec

from trunkline._util.nlp.titles import make_title
from trunkline._util.text import one_line
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationPage,
    ConversationSlice,
    ConversationSummary,
    FindConversation,
    ListConversations,
    LoadConversation,
    Message,
)
from trunkline.contracts.gateway.messages import ConversationView, GetConversation, RenameConversation
from trunkline.contracts.memory.subjects import (
    MEMORY_APPEND_CONVERSATION,
    MEMORY_FIND_CONVERSATION,
    MEMORY_LIST_CONVERSATIONS,
    MEMORY_LOAD_CONVERSATION,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.ids import is_id
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus

PAGE_SIZE = 100
"""The largest page of a list, and how many waiting conversations a list looks at."""


MAX_TITLE_CHARS = 200
"""Characters of a title that the owner gives."""


def title_of(messages: Iterable[Message]) -> str | None:
    """The title of a conversation that memory has nothing of yet, made from the first thing a person said."""
    said = next((message.content for message in messages if message.role == "user" and message.content), "")
    return make_title(said) or None


class ConversationService:
    """Stores, loads, finds and lists. Raises Refusal with a fixed code, and BusError when memory does not answer."""

    def __init__(self, bus: Bus, turns: TurnLookup, known: BlockCache) -> None:
        self._bus = bus
        self._turns = turns
        self._known = known

    async def store(self, append: AppendConversation) -> ConversationAppended:
        """Append a turn's messages. A conversation of a block that was put away is refused: nothing may revive it."""
        if (await self._known.get(append.block)).config is None:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no block called {append.block!r}.")
        return await self._bus.call(MEMORY_APPEND_CONVERSATION, append, timeout=20.0, repeatable=True)

    async def load(self, request: LoadConversation) -> ConversationSlice:
        """A conversation's stored messages."""
        return await self._bus.call(MEMORY_LOAD_CONVERSATION, request, timeout=10.0, repeatable=True)

    async def block_of(self, conversation: str) -> str:
        """The block that holds a conversation, just begun or stored. Refused with ``not_found``.

        Memory is asked last: one with a turn under way is found without it, so that however many messages come for that
        one, memory has no work by them."""
        if not is_id(conversation):
            raise refusal(ErrorCode.NOT_FOUND)
        begun = await self._turns.block_of(conversation)
        if begun is not None:
            return begun
        stored = await self._find(conversation)  # where a turn is when it has left inbox and journal
        if stored is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        return stored.block

    async def view(self, request: GetConversation) -> ConversationView:
        """A conversation with its messages. What a turn under way has said so far is in its feed, not here."""
        if not is_id(request.conversation):
            raise refusal(ErrorCode.NOT_FOUND)
        states = await self._turns.unfinished(
            request.conversation
        )  # before memory: a turn leaves it for there
        stored = await self._stored(request.conversation)
        messages = stored.messages if stored is not None else ()
        known = {message.id for message in messages}
        waiting = [message for state in states for message in state.messages if message.id not in known]
        if stored is None and not states:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        summary = stored.summary if stored is not None and stored.summary else _begun_summary(states)
        shown = (*messages, *_unique(waiting))
        return ConversationView(
            summary=summary,
            messages=tuple(m for m in shown if request.include_tools or is_public(m)),
            running=states[0].request.turn if states else None,
        )

    async def rename(self, wish: RenameConversation, actor: str) -> ConversationSummary:
        """Give a conversation a title of the owner's, or with None the one that is made. Refused with ``not_found``,
        and ``invalid_request`` for a title that no list can show."""
        title = "" if wish.title is None else _titled(wish.title)
        block = await self.block_of(wish.conversation)
        append = AppendConversation(
            block=block, conversation=wish.conversation, messages=(), actor=actor, title=title
        )
        await self.store(append)
        summary = await self._find(wish.conversation)
        if summary is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        return summary

    async def list_conversations(self, query: ListConversations) -> ConversationPage:
        """A page of the list, newest first. Conversations whose first turn has not ended come before the stored."""
        if not 1 <= query.limit <= PAGE_SIZE or query.offset < 0:
            raise InvalidField("limit", f"It is from 1 to {PAGE_SIZE}, and offset from 0 on.")
        new = [summary for summary in await self._new() if _matches(summary, query)]
        mine = new[query.offset : query.offset + query.limit]
        rest = msgspec.structs.replace(
            query, limit=max(1, query.limit - len(mine)), offset=max(0, query.offset - len(new))
        )
        stored = await self._bus.call(MEMORY_LIST_CONVERSATIONS, rest, timeout=10.0)
        shown = (*mine, *stored.conversations)[: query.limit]
        return ConversationPage(
            conversations=shown, total=stored.total + len(new), limit=query.limit, offset=query.offset
        )

    async def count(self, block: str) -> int:
        """How many conversations of a block are stored."""
        query = ListConversations(block=block, limit=1, one_shot=True)
        return (await self._bus.call(MEMORY_LIST_CONVERSATIONS, query, timeout=10.0)).total

    async def _find(self, conversation: str) -> ConversationSummary | None:
        wish = FindConversation(conversation=conversation)
        found = await self._bus.call(MEMORY_FIND_CONVERSATION, wish, repeatable=True)
        return found.summary

    async def _stored(self, conversation: str) -> ConversationSlice | None:
        found = await self._find(conversation)
        if found is None:
            return None
        slice_ = await self.load(LoadConversation(block=found.block, conversation=conversation))
        return msgspec.structs.replace(slice_, summary=slice_.summary or found)

    async def _new(self) -> list[ConversationSummary]:
        """Conversations that nothing is stored of yet, newest first."""
        first: dict[str, TurnRequested] = {}
        for request in (await self._turns.queued_requests())[-PAGE_SIZE:]:
            first.setdefault(request.conversation, request)
        new = [one for one in first.values() if await self._find(one.conversation) is None]
        return [_begun_summary([TurnState(request)]) for request in reversed(new)]


def _titled(text: str) -> str:
    """A title in one line."""
    title = one_line(" ".join(text.split()))
    if not title or len(title) > MAX_TITLE_CHARS:
        raise InvalidField(("title",), f"It is a text of 1 to {MAX_TITLE_CHARS} characters, or null.")
    return title


def is_public(message: Message) -> bool:
    """Report whether PA's public view shows a message: what people and the agent said, and no tools (conflict C5)."""
    return message.role == "user" or (
        message.role == "assistant" and bool(message.content or not message.tool_calls)
    )


def _unique(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple({message.id: message for message in messages}.values())


def _begun_summary(states: Iterable[TurnState]) -> ConversationSummary:
    """The line of a conversation that is known only by its turns."""
    said = [message for state in states for message in state.messages]
    request = next(iter(states)).request
    return ConversationSummary(
        id=request.conversation,
        block=request.block,
        title=title_of(said),
        created_at=said[0].created_at,
        updated_at=said[-1].created_at,
        message_count=len(said),
        one_shot=bool(request.one_shot),
    )


def _matches(summary: ConversationSummary, query: ListConversations) -> bool:
    return (
        (query.block is None or summary.block == query.block)
        and (query.one_shot or not summary.one_shot)
        and (not query.search or query.search.casefold() in (summary.title or "").casefold())
        and (query.start is None or summary.updated_at >= query.start)
        and (query.end is None or summary.updated_at <= query.end)
    )
