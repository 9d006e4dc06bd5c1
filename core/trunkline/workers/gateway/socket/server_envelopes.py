"""The envelopes that the server sends over ``/ws``: its replies, and the union of all."""

from typing import Any

from trunkline.errors import ErrorCode
from trunkline.workers.gateway.http.schemas.schema_base import Out
from trunkline.workers.gateway.socket.envelope_base import ServerEnvelope
from trunkline.workers.gateway.socket.event_envelopes import (
    ApprovalRequestEnvelope,
    ApprovalSettledEnvelope,
    ChatEnvelope,
    TextResetEnvelope,
    ThoughtEnvelope,
    ToolCallEnvelope,
    ToolProgressEnvelope,
    ToolResultEnvelope,
    TurnEndedEnvelope,
)
from trunkline.workers.gateway.socket.status_envelopes import BankruptEnvelope, PanicEnvelope, StatusEnvelope


class AckPayload(Out, frozen=True, kw_only=True):
    """The request with the id ``reply_to`` is done; a message or decision is on the bus.

    ``duplicate`` means that it was there before. ``otherwise`` is the turn that answers a steering message if the turn
    ends before it takes the message.
    """

    reply_to: str
    block: str = ""
    conversation: str = ""
    turn: str = ""
    message_id: str = ""
    duplicate: bool = False
    otherwise: str | None = None


class AckEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="ack"):
    """A request of the client succeeded."""

    payload: AckPayload


class ErrorPayload(Out, frozen=True, kw_only=True):
    """A fixed code and its sentence. ``reply_to`` is the id of the request, null if it had none that can be read.
    ``correlation_id`` leads to the log. ``subscription`` is set if a subscription ended. ``metadata`` has the ``field``
    (a JSON pointer) and the ``reason``.
    """

    code: ErrorCode
    message: str
    reply_to: str | None
    correlation_id: str
    subscription: str | None = None
    metadata: dict[str, Any] = {}


class ErrorEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="error"):
    """A request failed and changed nothing, or a subscription ended. The socket stays open."""

    payload: ErrorPayload


class PongPayload(Out, frozen=True, kw_only=True):
    """The id of the ``ping``."""

    reply_to: str


class PongEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="pong"):
    """The answer to ``ping``."""

    payload: PongPayload


class ResyncPayload(Out, frozen=True, kw_only=True):
    """The subscription that fell behind. For a turn, its events after ``position`` follow, with none left out and none
    repeated. Without a turn, all present states follow.
    """

    subscription: str
    turn: str = ""
    position: str = ""


class ResyncEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="resync"):
    """The client reads too slowly for the gateway to keep what it has not read."""

    payload: ResyncPayload


TurnMessage = (
    ThoughtEnvelope
    | ChatEnvelope
    | TextResetEnvelope
    | ToolCallEnvelope
    | ToolProgressEnvelope
    | ToolResultEnvelope
    | ApprovalRequestEnvelope
    | ApprovalSettledEnvelope
    | StatusEnvelope
    | TurnEndedEnvelope
)
"""The envelopes of a turn's events."""


ServerMessage = (
    AckEnvelope
    | ErrorEnvelope
    | PongEnvelope
    | ResyncEnvelope
    | TurnMessage
    | BankruptEnvelope
    | PanicEnvelope
)
"""All envelopes that the server sends."""
