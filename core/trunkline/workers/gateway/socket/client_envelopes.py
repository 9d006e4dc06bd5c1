"""The envelopes that a client sends over ``/ws``."""

from typing import Any, Literal

from trunkline.contracts.approvals.messages import ApprovalScope
from trunkline.workers.gateway.http.schemas.schema_base import In
from trunkline.workers.gateway.socket.envelope_base import ClientEnvelope, Id


class NewChat(In, frozen=True, kw_only=True):
    """A message. Without a ``conversation`` it begins one, in ``block``. A repeat with the same ``client_id`` is the
    same message. ``shows`` tells the model in a sentence or two in which form the person sees the answer; at most 500
    characters.
    """

    content: str
    conversation: str | None = None
    block: str | None = None
    client_id: Id | None = None
    metadata: dict[str, Any] = {}
    shows: str = ""


class SendChat(ClientEnvelope, frozen=True, kw_only=True, tag="chat"):
    """A message to an agent."""

    payload: NewChat


class NewSteer(In, frozen=True, kw_only=True):
    """A message for the running ``turn``. If that turn has ended, the message becomes a turn of its own; so it does if
    the turn is somebody else's and a policy names one of the two. A repeat with the same ``client_id`` is the same
    message. ``shows`` counts in a turn of its own.
    """

    turn: str
    content: str
    client_id: Id | None = None
    metadata: dict[str, Any] = {}
    shows: str = ""


class SendSteer(ClientEnvelope, frozen=True, kw_only=True, tag="steer"):
    """A message into a running turn."""

    payload: NewSteer


class CancelPayload(In, frozen=True, kw_only=True):
    """The ``turn`` to end: at once, or after its step."""

    turn: str
    mode: Literal["now", "after_step"] = "now"


class SendCancel(ClientEnvelope, frozen=True, kw_only=True, tag="cancel"):
    """End a turn."""

    payload: CancelPayload


class ApprovalResponsePayload(In, frozen=True, kw_only=True):
    """The decision about the ``call`` of a ``turn``, for the call with this ``hash`` only. With ``scope`` an approval
    also covers similar calls. A question takes an ``answer`` and needs no ``allow``.
    """

    turn: str
    call: str
    hash: str
    allow: bool | None = None
    scope: ApprovalScope = "once"
    answer: str = ""


class ApprovalResponse(ClientEnvelope, frozen=True, kw_only=True, tag="approval_response"):
    """Decide about a call, or answer a question."""

    payload: ApprovalResponsePayload


class SubscribePayload(In, frozen=True, kw_only=True):
    """The subject of a subscription: one of ``conversation``, ``turn`` and ``block``; everything if none is given.

    A turn's events begin after the position that ``after`` has for the turn, else at its beginning. A conversation
    sends the events of its running turn and of every later one; if ``after`` has a turn, it sends all from there on. A
    block, and everything, send states and changes (``status``, approvals), the present states first; with ``events``
    also the events of all running turns. ``bankrupt``, its reset and ``panic`` come with any of them.
    """

    conversation: str | None = None
    turn: str | None = None
    block: str | None = None
    events: bool = False
    after: dict[str, str] = {}


class Subscribe(ClientEnvelope, frozen=True, kw_only=True, tag="subscribe"):
    """Watch something. The subscription has the ``id`` of this envelope."""

    payload: SubscribePayload


class UnsubscribePayload(In, frozen=True, kw_only=True):
    """The ``id`` of the envelope that subscribed."""

    subscription: Id


class Unsubscribe(ClientEnvelope, frozen=True, kw_only=True, tag="unsubscribe"):
    """End a subscription."""

    payload: UnsubscribePayload


class PingPayload(In, frozen=True, kw_only=True):
    """An empty payload."""


class Ping(ClientEnvelope, frozen=True, kw_only=True, tag="ping"):
    """Ask for a ``pong``: a browser cannot see the pings of the protocol."""

    payload: PingPayload = PingPayload()


ClientMessage = SendChat | SendSteer | SendCancel | ApprovalResponse | Subscribe | Unsubscribe | Ping
"""All envelopes that a client may send."""
