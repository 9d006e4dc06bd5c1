"""The requests and replies of the gateway, used by every channel and by the HTTP server."""

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from trunkline.contracts.blocks.notice_preferences import NoticeKind
from trunkline.contracts.conversations.messages import (
    ConversationSummary,
    DocumentFile,
    Image,
    Message,
    Usage,
)
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.contracts.sentences.catalogue import Sentence
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.contracts.turns.lanes import Trigger
from trunkline.contracts.turns.messages import FinishReason, ResponseRequest
from trunkline.errors import ErrorCode
from trunkline_bus import Payload

MAX_SHOWS = 500
"""The largest number of characters of ``shows``, which the model receives with every message."""


class SendMessage(Payload, frozen=True, kw_only=True, tag="gateway.send.v1"):
    """Send a message. Repeating the request with the same ``client_id`` in the same conversation yields the same
    turn.

    Without a ``conversation`` a new conversation starts in ``block``; None selects the block that the gateway's rules
    choose. ``history``, ``one_shot``, ``client_tools``, ``model``, ``max_tokens``, ``temperature``, ``parameters``,
    ``instructions``, ``tool_choice``, ``response_format``, ``shows``, ``response`` and ``trigger`` are as in
    ``TurnRequested``; a channel's client adds ``shows``. ``preceding`` are messages before ``content``. ``content``
    may be empty if the last of ``preceding`` is a tool's result, or if there are files.

    ``images`` and ``documents`` are files that belong to ``content``; messages of ``history`` and ``preceding`` carry
    their own. An image with a name may be among the documents. The gateway recognises the type of each file by its
    content, stores the file in memory and names it in the message (``Message.attachments``) before the message is
    accepted.
    """

    content: str
    images: tuple[Image, ...] = ()
    documents: tuple[DocumentFile, ...] = ()
    block: str | None = None
    conversation: str | None = None
    client_id: str | None = None
    metadata: dict[str, object] = {}
    trigger: Trigger = "message"
    history: tuple[Message, ...] | None = None
    one_shot: bool = False
    preceding: tuple[Message, ...] = ()
    client_tools: tuple[ToolSchema, ...] = ()
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    parameters: dict[str, Any] = {}
    instructions: str = ""
    tool_choice: ToolChoice | None = None
    response_format: ResponseFormat | None = None
    shows: str = ""
    response: ResponseRequest | None = None
    steer: str | None = None
    """The turn to add this message to, if that turn still runs; None starts or queues a new turn."""

    background: bool = False
    """True if nobody waits for the answer: the turn is in the lane ``background``, and an approval in it may take the
    time of the background deadline."""


class TranscriptHead(Payload, frozen=True, kw_only=True, tag="gateway.transcript.v1"):
    """The conversation that a transcript belongs to, up to the end of ``turn``. ``next`` is the turn that continues
    from there, "" if there is none.
    """

    conversation: str
    turn: str
    next: str = ""


class ClientRequest(Payload, frozen=True, kw_only=True, tag="gateway.request.v1"):
    """The id of a request of an OpenAI client, so that the client's retry counts as the same request. The gateway
    assigns the id.
    """

    client_id: str


class DeletedResponse(Payload, frozen=True, kw_only=True, tag="gateway.deleted-response.v1"):
    """A client deleted the response of this turn. The response can no longer be retrieved or continued by its id."""

    turn: str


class MessageAccepted(Payload, frozen=True, kw_only=True, tag="gateway.accepted.v1"):
    """The message is stored on disk and will be answered, even if processes fail from now on.

    For a message to a running turn, ``turn`` is that turn, and ``otherwise`` is the turn that answers the message if
    it arrives too late.
    """

    block: str
    conversation: str
    turn: str
    message_id: str
    duplicate: bool = False
    otherwise: str | None = None


class GetConversation(Payload, frozen=True, kw_only=True, tag="gateway.conversation.v1"):
    """Ask for a conversation with its messages, including those of the running turn."""

    conversation: str
    include_tools: bool = False


class ChangeConversation(Payload, frozen=True, kw_only=True, tag="gateway.conversation-change.v1"):
    """Change what a list shows of a conversation. What is unset stays.

    ``title`` is its title; None restores the title derived from its first message. ``pinned`` pins or unpins it;
    ``archived`` archives it or takes it out of the archive.
    """

    conversation: str
    title: str | UnsetType | None = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


ExportFormat = Literal["markdown", "json"]
"""The format of an exported conversation."""


class ExportConversation(Payload, frozen=True, kw_only=True, tag="gateway.conversation-export.v1"):
    """Ask for everything that was said in a conversation and its branches, as one text."""

    conversation: str
    format: ExportFormat = "markdown"


class ConversationExport(Payload, frozen=True, kw_only=True, tag="gateway.conversation-exported.v1"):
    """An exported conversation. ``name`` is a name for its file."""

    name: str
    media_type: str
    text: str


class GetBranches(Payload, frozen=True, kw_only=True, tag="gateway.branches.v1"):
    """Ask where a conversation and its forks part."""

    conversation: str


class ConversationView(Payload, frozen=True, kw_only=True, tag="gateway.conversation-view.v1"):
    """A conversation as clients see it. ``running`` is the turn in progress."""

    summary: ConversationSummary
    messages: tuple[Message, ...] = ()
    running: str | None = None


class GetFile(Payload, frozen=True, kw_only=True, tag="gateway.file.v1"):
    """Ask for a piece of a file of a conversation, from ``offset`` on. ``path`` is the path of an ``Attachment``."""

    path: str
    offset: int = 0


class FilePiece(Payload, frozen=True, kw_only=True, tag="gateway.file-piece.v1"):
    """A piece of a file, and the size of the whole file in bytes."""

    data: bytes
    size: int


class CancelTurn(Payload, frozen=True, kw_only=True, tag="gateway.cancel.v1"):
    """End a turn now or after its running step."""

    turn: str
    mode: Literal["now", "after_step"] = "now"


class ForkTurn(Payload, frozen=True, kw_only=True, tag="gateway.fork.v1"):
    """Start a new conversation from the state of a turn before its model call number ``step``, and call the model
    again from there.

    ``model`` selects another model. ``content`` replaces the message that led to that step. Repeating the request
    with the same ``client_id`` yields the same fork.
    """

    turn: str
    step: int
    content: str | None = None
    model: str | None = None
    client_id: str | None = None


class GetTurn(Payload, frozen=True, kw_only=True, tag="gateway.turn.v1"):
    """Ask for the state of a turn."""

    turn: str


class TurnView(Payload, frozen=True, kw_only=True, tag="gateway.turn-view.v1"):
    """A turn as clients see it. ``reason``, ``message_id``, ``code`` and ``usage`` are set when the turn has
    finished. ``epoch`` counts the runs of the turn: 0 before the first, one more after each takeover or restart.
    ``traceparent`` is the W3C trace context of the turn.
    """

    turn: str
    block: str
    conversation: str
    status: Literal["queued", "running", "parked", "finished"]
    reason: FinishReason | None = None
    message_id: str | None = None
    code: ErrorCode | None = None
    usage: Usage = Usage()
    traceparent: str | None = None
    epoch: int = 0


class TellOwner(Payload, frozen=True, kw_only=True, tag="channels.tell-owner.v1"):
    """A message to the owner that answers none. With ``notice``, an id, the owner's preferences for its ``kind`` decide
    whether this channel tells it and when; it happened ``at``. A ``message`` is from the agent of the block, and the
    channel says so; any other text is the platform's. The channel puts ``sentences`` above the text into the owner's
    language.
    """

    block: str
    text: str = ""
    sentences: tuple[Sentence, ...] = ()
    kind: NoticeKind = "message"
    notice: str = ""
    at: datetime | None = None


class CommandSucceeded(Payload, frozen=True, kw_only=True, tag="gateway.done.v1"):
    """The command succeeded."""
