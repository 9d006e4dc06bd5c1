"""The conversation service: adds messages to conversations and returns the views of them. No other part adds messages.

The memory worker stores the messages. A view contains the stored messages and those of turns that have not ended.
"""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from trunkline._util.nlp.titles import make_title
from trunkline._util.text import one_line
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.availability import block_not_found
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, block_folder
from trunkline.contracts.conversations.branch import ConversationBranches, FindBranches
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationAppended,
    ConversationPage,
    ConversationSlice,
    ConversationSummary,
    FindConversation,
    ForkedFrom,
    ListConversations,
    LoadConversation,
    Message,
)
from trunkline.contracts.conversations.paths import conversation_of_attachment
from trunkline.contracts.gateway.messages import (
    ChangeConversation,
    ConversationExport,
    ConversationView,
    ExportConversation,
    FilePiece,
    GetConversation,
    GetFile,
)
from trunkline.contracts.memory.attachments import MEMORY_READ_ATTACHMENT, ReadAttachment
from trunkline.contracts.memory.subjects import (
    MEMORY_APPEND_CONVERSATION,
    MEMORY_FIND_BRANCHES,
    MEMORY_FIND_CONVERSATION,
    MEMORY_LIST_CONVERSATIONS,
    MEMORY_LOAD_CONVERSATION,
)
from trunkline.contracts.turns.context_view import ContextView, GetContext
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import TURN_CONTEXT
from trunkline.errors import ErrorCode
from trunkline.runtime.block_access import BlockAccess, BlockRights
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.block_store import BlockStore
from trunkline.workers.gateway.conversation_export import build_document, to_json, to_markdown
from trunkline.workers.gateway.conversation_merge import list_conversations_of
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.ids import is_id
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus, RemoteFault

PAGE_SIZE = 100
"""The largest page of a list. A list also considers at most this many conversations that are not stored
yet."""


MAX_TITLE_CHARS = 200
"""Largest number of characters of a title that the owner gives."""


def title_of(messages: Iterable[Message]) -> str | None:
    """Return the title of a conversation that is not stored yet, made from the first user message."""
    said = (make_title(message.content) for message in messages if message.role == "user")
    return next(filter(None, said), None)


class ConversationService:
    """Stores, loads, finds and lists conversations. A conversation may be read by whoever may read its block.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(self, bus: Bus, turns: TurnLookup, cache: BlockCache, access: BlockAccess) -> None:
        self._bus = bus
        self._turns = turns
        self._cache = cache
        self._access = access
        self._folders = BlockStore(bus, cache)

    async def store(self, append: AppendConversation) -> ConversationAppended:
        """Append a turn's messages. Refused with ``not_found`` for a deleted or archived block, so that no
        late answer recreates it."""
        if (await self._cache.get(append.block)).config is None:
            raise refusal(ErrorCode.NOT_FOUND, block_not_found(append.block))
        return await self._bus.call(MEMORY_APPEND_CONVERSATION, append, timeout=20.0, repeatable=True)

    async def load(self, request: LoadConversation) -> ConversationSlice:
        """Return a conversation's stored messages."""
        return await self._bus.call(MEMORY_LOAD_CONVERSATION, request, timeout=10.0, repeatable=True)

    async def block_of(self, conversation: str) -> str:
        """Return the block of a conversation, stored or not, for whomever asks. Refused with ``not_found``.

        Memory is called last. A conversation with a turn that has not ended is found without memory, so messages to
        that conversation put no load on memory.
        """
        if not is_id(conversation):
            raise refusal(ErrorCode.NOT_FOUND)
        active = await self._turns.block_of(conversation)
        if active is not None:
            return active
        stored = await self._find(conversation)  # the turn is no longer in the inbox or the journal
        if stored is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        return stored.block

    async def require(self, conversation: str, sender: Sender, action: TokenScope) -> str:
        """Return the block of a conversation in which the sender may do this. Refused with ``not_found`` and with
        ``forbidden`` as by ``BlockRights.require``."""
        rights = await self._access.rights_of(sender.identity)
        block = await self.block_of(conversation)
        rights.require(action, block)
        return block

    async def view(self, request: GetConversation, sender: Sender) -> ConversationView:
        """Return a conversation with its messages. The text of a running turn is in the turn's feed and not in the
        view."""
        if not is_id(request.conversation):
            raise refusal(ErrorCode.NOT_FOUND)
        rights = await self._access.rights_of(sender.identity)
        states = await self._turns.unfinished(
            request.conversation
        )  # read before memory, so that a turn that ends in between is found in memory
        stored = await self._stored(request.conversation)
        messages = stored.messages if stored is not None else ()
        if not messages and states and states[0].request.fork is not None:
            messages = await self._before_fork(states[0].request.fork.origin)
        stored_ids = {message.id for message in messages}
        waiting = [message for state in states for message in state.messages if message.id not in stored_ids]
        if stored is None and not states:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        summary = stored.summary if stored is not None and stored.summary else _unstored_summary(states)
        rights.require(TokenScope.READ, summary.block)
        shown = (*messages, *_unique(waiting))
        return ConversationView(
            summary=summary,
            messages=tuple(m for m in shown if request.include_tools or is_public(m)),
            running=states[0].request.turn if states else None,
        )

    async def summary(self, conversation: str) -> ConversationSummary:
        """Return the list entry of a conversation, stored or not. Refused with ``not_found``."""
        stored = await self._find(conversation)
        if stored is not None:
            return stored
        states = await self._turns.unfinished(conversation)
        if not states:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        return _unstored_summary(states)

    async def file(self, asked: GetFile, sender: Sender) -> FilePiece:
        """Return a piece of a file of a conversation. Refused with ``not_found``, also for a path that is no file of a
        conversation, and with ``forbidden`` as by ``BlockRights.require``."""
        conversation = conversation_of_attachment(asked.path)
        if conversation is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such file.")
        block = await self.require(conversation, sender, TokenScope.READ)
        if not asked.path.startswith(f"{block_folder(block)}/"):
            raise refusal(ErrorCode.NOT_FOUND, "There is no such file.")
        request = ReadAttachment(path=asked.path, offset=asked.offset)
        piece = await self._bus.call(MEMORY_READ_ATTACHMENT, request, timeout=10.0, repeatable=True)
        return FilePiece(data=piece.data, size=piece.size)

    async def context(self, asked: GetContext, sender: Sender) -> ContextView:
        """Return what a model was sent in a turn of the conversation. Refused with ``not_found``.

        The texts include files of memory and recalled passages, which are no part of the conversation, so only the
        owner gets them.
        """
        if asked.texts:
            sender.require_administrator("reads the texts of a context", TokenScope.READ)
        await self.require(asked.conversation, sender, TokenScope.READ)
        if asked.turn is not None and not is_id(asked.turn):
            raise refusal(ErrorCode.NOT_FOUND, "There is no such turn.")
        try:
            return await self._bus.call(TURN_CONTEXT, asked, timeout=15.0, repeatable=True)
        except RemoteFault as fault:
            if fault.code != ErrorCode.NOT_FOUND:
                raise
            raise refusal(ErrorCode.NOT_FOUND, fault.message) from fault

    async def change(self, request: ChangeConversation, sender: Sender) -> ConversationSummary:
        """Name, pin or archive a conversation. Whoever may chat in its block may.

        Refused with ``not_found``, and with ``invalid_request`` for a title that a list cannot show and for a request
        that changes nothing.
        """
        if request.title is UNSET and request.pinned is UNSET and request.archived is UNSET:
            raise InvalidField(("title",), "Give a title, pinned or archived.")
        title = _stored_title(request.title)
        block = await self.require(request.conversation, sender, TokenScope.CHAT)
        append = AppendConversation(
            block=block,
            conversation=request.conversation,
            messages=(),
            actor=sender.identity.id,
            title=title,
            pinned=None if request.pinned is UNSET else request.pinned,
            archived=None if request.archived is UNSET else request.archived,
        )
        await self.store(append)
        summary = await self._find(request.conversation)
        if summary is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such conversation.")
        return summary

    async def branches(self, conversation: str, sender: Sender) -> ConversationBranches:
        """Return where a conversation and its forks part. A turn that has not ended is not considered. Refused with
        ``not_found``."""
        block = await self.require(conversation, sender, TokenScope.READ)
        request = FindBranches(block=block, conversation=conversation)
        return await self._bus.call(MEMORY_FIND_BRANCHES, request, timeout=20.0, repeatable=True)

    async def export(self, request: ExportConversation, sender: Sender) -> ConversationExport:
        """Return a conversation and its branches as one text. Refused with ``not_found``."""
        asked = GetConversation(conversation=request.conversation, include_tools=True)
        view = await self.view(asked, sender)
        family = (await self.branches(request.conversation, sender)).family
        others = [one for one in family if one.id != request.conversation]
        found = [await self.load(LoadConversation(block=one.block, conversation=one.id)) for one in others]
        branches = zip(others, (one.messages for one in found), strict=True)
        document = build_document(view.summary, view.messages, branches)
        if request.format == "json":
            return ConversationExport(
                name=f"{view.summary.id}.json", media_type="application/json", text=to_json(document)
            )
        return ConversationExport(
            name=f"{view.summary.id}.md", media_type="text/markdown", text=to_markdown(document)
        )

    async def list_conversations(self, query: ListConversations, sender: Sender) -> ConversationPage:
        """Return a page of the list, newest first, with the conversations of the blocks that the sender may read.
        Conversations whose first turn has not ended come first."""
        if not 1 <= query.limit <= PAGE_SIZE or query.offset < 0:
            raise InvalidField("limit", f"It is from 1 to {PAGE_SIZE}, and offset from 0 on.")
        rights = await self._access.rights_of(sender.identity)
        unstored = [one for one in await self._new() if rights.may(TokenScope.READ, one.block)]
        new = [summary for summary in unstored if _matches(summary, query)]
        mine = new[query.offset : query.offset + query.limit]
        rest = msgspec.structs.replace(
            query, limit=max(1, query.limit - len(mine)), offset=max(0, query.offset - len(new))
        )
        stored = await self._stored_page(rest, rights)
        shown = (*mine, *stored.conversations)[: query.limit]
        return ConversationPage(
            conversations=shown, total=stored.total + len(new), limit=query.limit, offset=query.offset
        )

    async def count(self, block: str) -> int:
        """Return the number of stored conversations of a block."""
        query = ListConversations(block=block, limit=1, one_shot=True, archived="include")
        return (await self._bus.call(MEMORY_LIST_CONVERSATIONS, query, timeout=10.0)).total

    async def _stored_page(self, query: ListConversations, rights: BlockRights) -> ConversationPage:
        """Return a page of the stored conversations that may be read."""
        if rights.is_unlimited:
            return await self._bus.call(MEMORY_LIST_CONVERSATIONS, query, timeout=10.0)
        blocks = await self._folders.folders(BLOCKS_FOLDER) if query.block is None else [query.block]
        readable = [block for block in blocks if rights.may(TokenScope.READ, block)]
        return await list_conversations_of(self._bus, readable, query)

    async def _find(self, conversation: str) -> ConversationSummary | None:
        request = FindConversation(conversation=conversation)
        found = await self._bus.call(MEMORY_FIND_CONVERSATION, request, repeatable=True)
        return found.summary

    async def _stored(self, conversation: str) -> ConversationSlice | None:
        found = await self._find(conversation)
        if found is None:
            return None
        slice_ = await self.load(LoadConversation(block=found.block, conversation=conversation))
        return msgspec.structs.replace(slice_, summary=slice_.summary or found)

    async def _before_fork(self, origin: ForkedFrom) -> tuple[Message, ...]:
        """Return the messages that a fork begins with, while its first turn runs: memory has no copy of them yet."""
        stored = await self._stored(origin.conversation)
        messages = stored.messages if stored is not None else ()
        of_turn = [number for number, message in enumerate(messages) if message.turn == origin.turn]
        if not of_turn:  # the turn has not ended, so nothing follows it
            return messages
        return messages[: of_turn[-1] + 1 if origin.step else of_turn[0]]

    async def _new(self) -> list[ConversationSummary]:
        """Return the conversations that are not stored yet, newest first."""
        first: dict[str, TurnRequested] = {}
        for request in (await self._turns.queued_requests())[-PAGE_SIZE:]:
            first.setdefault(request.conversation, request)
        new = [one for one in first.values() if await self._find(one.conversation) is None]
        return [_unstored_summary([TurnState(request)]) for request in reversed(new)]


def _stored_title(text: str | UnsetType | None) -> str | None:
    """Return a title in one line, as memory takes it: "" for the derived title, None to leave it. Raises
    InvalidField."""
    if not isinstance(text, str):
        return "" if text is None else None
    title = one_line(" ".join(text.split()))
    if not title or len(title) > MAX_TITLE_CHARS:
        raise InvalidField(("title",), f"It must be a text of 1 to {MAX_TITLE_CHARS} characters, or null.")
    return title


def is_public(message: Message) -> bool:
    """Report whether PA's public view shows a message. It shows the messages of users and agents, and none of tools."""
    return message.role == "user" or (
        message.role == "assistant" and bool(message.content or not message.tool_calls)
    )


def _unique(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple({message.id: message for message in messages}.values())


def _unstored_summary(states: Iterable[TurnState]) -> ConversationSummary:
    """Return the list entry of a conversation that only its turns show, because memory has no messages of it yet."""
    said = [message for state in states for message in state.messages]
    request = next(iter(states)).request
    return ConversationSummary(
        id=request.conversation,
        block=request.block,
        title=title_of(said),
        created_at=said[0].created_at,
        updated_at=said[-1].created_at,
        message_count=len(said),
        forked_from=request.fork.origin if request.fork is not None else None,
        one_shot=bool(request.one_shot),
    )


def _matches(summary: ConversationSummary, query: ListConversations) -> bool:
    title = (summary.title or "").casefold()
    return query.admits(summary) and (not query.search or query.search.casefold() in title)
