"""A conversation and its messages: the same shape in memory, in a model request and on the bus."""

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from trunkline.contracts.memory.operation import change, query
from trunkline_bus import Payload

Role = Literal["system", "user", "assistant", "tool"]


def utc_now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


RAW_ARGUMENTS = ""
"""The key under which arguments travel that are no JSON object, as the text that the model wrote."""


DISPLAY_ONLY = "shown"
"""The key under which the metadata of an assistant's message says that its text only shows what a command brought: no
model said it, none is given it, and it is no evidence of anything."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A model's request to run a tool. ``id`` is unique within the turn; ``arguments`` is what the model sent."""

    id: str
    name: str
    arguments: dict[str, Any] = {}


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens as the provider counted them. Cached ones are a part of the input, reasoning is a part of the output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that a model is to look at. ``media_type`` is ``image/png``, ``image/jpeg``, ``image/gif`` or
    ``image/webp``; ``data`` the file's bytes."""

    media_type: str
    data: bytes


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation.

    ``images`` are pictures for a model, in a user's message that a tool puts; no conversation keeps any.
    ``tool_calls`` belong to an assistant message, whose ``content`` keeps the text that came with them.
    ``tool_call_id`` and ``name`` belong to a tool result; ``error`` marks a failed one, ``error_kind`` says of which
    kind (``TOOL_ERROR_KINDS``); messages of an earlier version have none.
    ``partial`` marks text of a model call that was cut, cancelled or failed.
    ``derived`` says whether it only repeats what memory holds, so that no search returns it as evidence; None where
    nobody said, as in messages of an earlier version.
    """

    id: str
    role: Role
    content: str
    created_at: datetime = msgspec.field(default_factory=utc_now)
    turn: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    error: bool = False
    error_kind: str = ""
    partial: bool = False
    derived: bool | None = None
    images: tuple[Image, ...] = ()
    metadata: dict[str, Any] = {}


class ForkedFrom(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation branched off: before that turn's model call number ``step`` (from 0)."""

    conversation: str
    turn: str
    step: int


class ConversationSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the conversation list."""

    id: str
    block: str
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    forked_from: ForkedFrom | None = None
    one_shot: bool = False


class LoadConversation(Payload, frozen=True, kw_only=True, tag="conversation.load.v1"):
    """Ask for a conversation's messages from number ``after`` on (0 = all)."""

    block: str
    conversation: str
    after: int = 0


class ConversationSlice(Payload, frozen=True, kw_only=True, tag="conversation.slice.v1"):
    """The messages from ``after`` on; ``count`` is how many there are in all. ``exists`` is false for an unknown id."""

    exists: bool
    count: int = 0
    messages: tuple[Message, ...] = ()
    summary: ConversationSummary | None = None


class AppendConversation(Payload, frozen=True, kw_only=True, tag="conversation.append.v1"):
    """Append messages at the end; those whose id is stored already are passed over, so a repeat changes nothing.

    A conversation that begins ``one_shot`` is kept, and neither listed nor searched until something else is appended.
    ``title`` is one that the owner gives, "" for the one that is made from what was said first; None leaves it.
    """

    block: str
    conversation: str
    messages: tuple[Message, ...]
    actor: str
    turn: str | None = None
    title: str | None = None
    forked_from: ForkedFrom | None = None
    one_shot: bool = False


class ConversationAppended(Payload, frozen=True, kw_only=True, tag="conversation.appended.v1"):
    """The messages are committed; ``count`` is how many the conversation holds now."""

    count: int


class ListConversations(Payload, frozen=True, kw_only=True, tag="conversation.list.v1"):
    """Ask for conversations, newest first. ``block`` None means every block; ``start`` and ``end`` bound updated_at;
    ``one_shot`` asks for those too that were never gone on with."""

    block: str | None = None
    limit: int = 20
    offset: int = 0
    search: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    one_shot: bool = False


class ConversationPage(Payload, frozen=True, kw_only=True, tag="conversation.page.v1"):
    """A page of the list; ``total`` counts all that match."""

    conversations: tuple[ConversationSummary, ...] = ()
    total: int = 0
    limit: int = 20
    offset: int = 0


class FindConversation(Payload, frozen=True, kw_only=True, tag="conversation.find.v1"):
    """Ask which block holds a conversation."""

    conversation: str


class ConversationFound(Payload, frozen=True, kw_only=True, tag="conversation.found.v1"):
    """The conversation's line, or None when it is unknown."""

    summary: ConversationSummary | None = None


MEMORY_APPEND_CONVERSATION = change(
    "conversation-append", AppendConversation, ConversationAppended, "Append to a conversation.", ("gateway",)
)
MEMORY_LOAD_CONVERSATION = query(
    "conversation-load", LoadConversation, ConversationSlice, "Read a conversation.", ("gateway", "tools")
)
MEMORY_LIST_CONVERSATIONS = query(
    "conversation-list", ListConversations, ConversationPage, "A page of conversations.", ("gateway",)
)
MEMORY_FIND_CONVERSATION = query(
    "conversation-find",
    FindConversation,
    ConversationFound,
    "The block of a conversation.",
    ("gateway",),
)
