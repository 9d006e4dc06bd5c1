"""A conversation and its messages: the same types in memory, in a model request and on the bus."""

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.memory.operation import change, query
from trunkline_bus import Payload

Role = Literal["system", "user", "assistant", "tool"]


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


RAW_ARGUMENTS = ""
"""The key that holds the model's original text if a call's arguments are not a JSON object."""


ArchivedChoice = Literal["exclude", "include", "only"]
"""Whether a list has the archived conversations."""


DISPLAY_ONLY = "shown"
"""The metadata key that marks an assistant message whose text only displays the output of a command. No model wrote
the text, no model receives it, and it is no evidence.
"""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A model's request to run a tool. ``id`` is unique within the turn. ``arguments`` are the arguments as the model
    sent them. ``timeout`` limits the call to fewer seconds than the tool's own limit; unset unless an adapter sets it.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    timeout: float | msgspec.UnsetType = msgspec.UNSET


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens as the provider counted them. A negative number, which some servers send, becomes 0.

    ``input_tokens`` includes ``cached_tokens``, which the provider read from its prompt cache, and
    ``cache_write_tokens``, which the provider wrote to its prompt cache. ``output_tokens`` includes
    ``reasoning_tokens``.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 0:
                msgspec.structs.force_setattr(self, name, 0)

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image for a model. ``media_type`` is ``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``;
    ``data`` is the file's bytes.
    """

    media_type: str
    data: bytes


class DocumentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document for a model. ``media_type`` is the type of the file, such as ``application/pdf``; ``name`` is the
    file's name; ``data`` is the file's bytes.
    """

    media_type: str
    name: str
    data: bytes


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a message, or one that a tool gave to the person, stored in memory beside the conversation. ``path``
    is its path from the memory root, ``name`` its name for people, ``media_type`` the type of its content, and
    ``size`` its size in bytes.
    """

    path: str
    name: str
    media_type: str
    size: int

    @property
    def notice(self) -> str:
        """Words that tell a person which file this is and where to find it."""
        return f"{self.name} ({self.size} bytes), in memory as {self.path}"


class ReasoningBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block of reasoning that a vendor requires back unchanged, such as a signed or encrypted block.

    ``vendor`` is the vendor of the adapter that received the block (``ModelAdapter.vendor``), ``model`` the model that
    wrote it. ``data`` is the block as the vendor's API has it. Only an adapter of the same vendor reads the block.
    """

    vendor: str
    model: str
    data: dict[str, Any]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation.

    ``attachments`` are the files of a user message, by their paths in memory. ``images`` and ``documents`` are the
    bytes of files for a model: those of attachments, loaded for one request, or those that a tool puts in.
    ``reasoning`` is the reasoning of an assistant message of the running turn, for the model's vendor. Conversations
    never store these three.
    ``tool_calls`` belong to an assistant message, whose ``content`` keeps the text of the same answer.
    ``tool_call_id`` and ``name`` belong to a tool result, and ``files`` are the files that its call gave to the person:
    no model receives them. ``error`` marks a failed tool result and ``error_kind`` is
    its kind (``TOOL_ERROR_KINDS``), "" in messages of an earlier version. ``partial`` marks the text of a model call
    that was cut off, cancelled or failed. ``derived`` is true if the message only repeats what memory holds, so that
    no search returns it as evidence; None if unknown, as in messages of an earlier version.
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
    attachments: tuple[Attachment, ...] = ()
    files: tuple[Attachment, ...] = ()
    images: tuple[Image, ...] = ()
    documents: tuple[DocumentFile, ...] = ()
    reasoning: tuple[ReasoningBlock, ...] = ()
    metadata: dict[str, Any] = {}


class ForkedFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The point at which a conversation was forked: before the turn's model call number ``step`` (from 0)."""

    conversation: str
    turn: str
    step: int


class ConversationSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of the conversation list. A person pins a conversation to find it again, and archives one to take it off
    the list.
    """

    id: str
    block: str
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    forked_from: ForkedFrom | None = None
    one_shot: bool = False
    pinned: bool = False
    archived: bool = False


class LoadConversation(Payload, frozen=True, kw_only=True, tag="conversation.load.v1"):
    """Ask for a conversation's messages from number ``after`` on (0 = all)."""

    block: str
    conversation: str
    after: int = 0


class ConversationSlice(Payload, frozen=True, kw_only=True, tag="conversation.slice.v1"):
    """The messages from ``after`` on. ``count`` is the number of all messages of the conversation. ``exists`` is
    false if the id is unknown. ``model`` is the model that was chosen for the conversation, None if none was.
    ``summary_record`` is the summary record in effect, None if there is none.
    """

    exists: bool
    count: int = 0
    messages: tuple[Message, ...] = ()
    summary: ConversationSummary | None = None
    model: str | None = None
    summary_record: SummaryRecord | None = None


class AppendConversation(Payload, frozen=True, kw_only=True, tag="conversation.append.v1"):
    """Append messages at the end. Messages whose id is already stored are skipped, so repeating the request changes
    nothing.

    A conversation that starts with ``one_shot`` is stored, but neither listed nor searched until another request
    appends to it. ``title`` is a title of the owner, or "" for the title derived from the first message; None leaves
    the title unchanged. ``model`` is the model of the conversation, or "" for none; None leaves it unchanged.
    ``pinned`` pins or unpins the conversation, ``archived`` archives it or takes it out of the archive; None leaves it
    unchanged, except that a new message takes a conversation out of the archive.
    ``summary_record`` is a summary record to store, and ``withdrawn_record`` the id of one to withdraw; see
    ``changed_records``.
    """

    block: str
    conversation: str
    messages: tuple[Message, ...]
    actor: str
    turn: str | None = None
    title: str | None = None
    forked_from: ForkedFrom | None = None
    one_shot: bool = False
    model: str | None = None
    summary_record: SummaryRecord | None = None
    withdrawn_record: str | None = None
    pinned: bool | None = None
    archived: bool | None = None


class ConversationAppended(Payload, frozen=True, kw_only=True, tag="conversation.appended.v1"):
    """The messages are committed. ``count`` is the number of messages in the conversation now."""

    count: int


class ListConversations(Payload, frozen=True, kw_only=True, tag="conversation.list.v1"):
    """Ask for conversations, newest first. ``block`` None means every block. ``start`` and ``end`` bound
    ``updated_at``. ``one_shot`` includes one-shot conversations that were never continued. ``pinned`` asks for the
    pinned ones alone, or for the others alone. ``archived`` None excludes archived conversations, but a ``search``
    finds them. ``forked_from`` asks for those that were forked from this conversation.
    """

    block: str | None = None
    limit: int = 20
    offset: int = 0
    search: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    one_shot: bool = False
    pinned: bool | None = None
    archived: ArchivedChoice | None = None
    forked_from: str | None = None

    def admits(self, summary: ConversationSummary) -> bool:
        """Report whether a conversation matches everything but ``search``."""
        origin = summary.forked_from.conversation if summary.forked_from is not None else None
        return (
            self.block in (None, summary.block)
            and (self.one_shot or not summary.one_shot)
            and (self.start is None or summary.updated_at >= self.start)
            and (self.end is None or summary.updated_at <= self.end)
            and self.pinned in (None, summary.pinned)
            and self.wanted_archived in (None, summary.archived)
            and self.forked_from in (None, origin)
        )

    @property
    def wanted_archived(self) -> bool | None:
        """The value of ``archived`` that listed conversations have; None if both are listed."""
        choice = self.archived or ("include" if (self.search or "").strip() else "exclude")
        return None if choice == "include" else choice == "only"


class ConversationPage(Payload, frozen=True, kw_only=True, tag="conversation.page.v1"):
    """A page of the list. ``total`` counts all conversations that match."""

    conversations: tuple[ConversationSummary, ...] = ()
    total: int = 0
    limit: int = 20
    offset: int = 0


class FindConversation(Payload, frozen=True, kw_only=True, tag="conversation.find.v1"):
    """Ask which block holds a conversation."""

    conversation: str


class ConversationFound(Payload, frozen=True, kw_only=True, tag="conversation.found.v1"):
    """The conversation's entry, or None if the id is unknown."""

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
