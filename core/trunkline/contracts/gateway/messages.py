"""The gateway's commands: what every channel and the HTTP surface use alike."""

from typing import Literal

from trunkline.contracts.conversations.messages import ConversationSummary, Message, Usage
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import ErrorCode
from trunkline_bus import Payload

MAX_SHOWS = 500
"""Characters in which a channel says what it shows: they stand before the model with every message."""


class SendMessage(Payload, frozen=True, kw_only=True, tag="gateway.send.v1"):
    """Send a message. The same ``client_id`` in the same conversation is the same turn.

    Without a ``conversation`` a new one begins in ``block`` (None = the block that the gateway's rules choose).
    ``history``, ``one_shot``, ``client_tools``, ``model``, ``max_tokens`` and ``temperature`` are as in
    ``TurnRequested``, and so is ``shows``, which a channel's client adds. ``preceding`` is told before ``content``,
    which may be empty when a tool's result ends it.
    """

    content: str
    block: str | None = None
    conversation: str | None = None
    client_id: str | None = None
    metadata: dict[str, object] = {}
    history: tuple[Message, ...] | None = None
    one_shot: bool = False
    preceding: tuple[Message, ...] = ()
    client_tools: tuple[ToolSchema, ...] = ()
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    shows: str = ""
    steer: str | None = None
    """The turn to take this message into, if it still runs; None starts or queues a turn of its own."""


class TranscriptHead(Payload, frozen=True, kw_only=True, tag="gateway.transcript.v1"):
    """The conversation that a transcript is of, up to the end of ``turn``; ``next`` is the turn that goes on from
    there, "" while none does."""

    conversation: str
    turn: str
    next: str = ""


class ClientRequest(Payload, frozen=True, kw_only=True, tag="gateway.request.v1"):
    """The gateway's id of a request of an OpenAI client, so that the client's own repeat of it is the same one."""

    client_id: str


class MessageAccepted(Payload, frozen=True, kw_only=True, tag="gateway.accepted.v1"):
    """The message is on disk and will be answered, whatever dies now.

    A message into a running turn names that turn, and in ``otherwise`` the one that answers it if it comes too late.
    """

    block: str
    conversation: str
    turn: str
    message_id: str
    duplicate: bool = False
    otherwise: str | None = None


class GetConversation(Payload, frozen=True, kw_only=True, tag="gateway.conversation.v1"):
    """Ask for a conversation with its messages, the running turn's included."""

    conversation: str
    include_tools: bool = False


class RenameConversation(Payload, frozen=True, kw_only=True, tag="gateway.conversation-rename.v1"):
    """Give a conversation a title of the owner's; with None it has the one that is made from what was said first."""

    conversation: str
    title: str | None


class ConversationView(Payload, frozen=True, kw_only=True, tag="gateway.conversation-view.v1"):
    """A conversation as clients see it; ``running`` is the turn under way."""

    summary: ConversationSummary
    messages: tuple[Message, ...] = ()
    running: str | None = None


class CancelTurn(Payload, frozen=True, kw_only=True, tag="gateway.cancel.v1"):
    """End a turn now or after its running step."""

    turn: str
    mode: Literal["now", "after_step"] = "now"


class ForkTurn(Payload, frozen=True, kw_only=True, tag="gateway.fork.v1"):
    """Begin a new conversation with what a turn had before its model call number ``step``, and ask again from there.

    ``model`` asks another one; ``content`` is said instead of what led to that step, if it is given. The same
    ``client_id`` is the same fork.
    """

    turn: str
    step: int
    content: str | None = None
    model: str | None = None
    client_id: str | None = None


class GetTurn(Payload, frozen=True, kw_only=True, tag="gateway.turn.v1"):
    """Ask where a turn stands."""

    turn: str


class TurnView(Payload, frozen=True, kw_only=True, tag="gateway.turn-view.v1"):
    """A turn as clients see it."""

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
    """Something that the agent of a block tells the owner through a channel, though nobody has asked."""

    block: str
    text: str


class CommandSucceeded(Payload, frozen=True, kw_only=True, tag="gateway.done.v1"):
    """The command was carried out."""
