"""The envelopes of ``/ws``: every message in both directions. Types only, no I/O.

An envelope has a ``type``, the sender's ``id``, an ISO 8601 ``timestamp`` and a ``payload``. The server sends exactly
the documented fields, and leaves out a field of a payload at its default. It ignores unknown fields of a client.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope, WithdrawalReason
from trunkline.contracts.blocks.messages import BlockStatusName
from trunkline.contracts.costs.messages import BudgetMeasure
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.messages import FinishReason
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.http.schema_base import In, Out
from trunkline.workers.gateway.http.turn_schemas import UsageCount

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class ClientEnvelope(In, frozen=True, kw_only=True, tag_field="type"):
    """Base of the envelopes of a client. ``id`` names the envelope in the reply. The server does not use the
    ``timestamp``.
    """

    id: Id
    timestamp: datetime


class ServerEnvelope(Out, frozen=True, kw_only=True, tag_field="type"):
    """Base of the envelopes of the server. Envelopes of the same event have the same ``id``."""

    id: str
    timestamp: datetime


# From the client -----------------------------------------------------------------------------------------------


class NewChat(In, frozen=True, kw_only=True):
    """A message. Without a ``conversation`` it begins one, in ``block``. A repeat with the same ``client_id`` is the
    same message.
    """

    content: str
    conversation: str | None = None
    block: str | None = None
    client_id: Id | None = None
    metadata: dict[str, Any] = {}


class SendChat(ClientEnvelope, frozen=True, kw_only=True, tag="chat"):
    """A message to an agent."""

    payload: NewChat


class NewSteer(In, frozen=True, kw_only=True):
    """A message for the running ``turn``. If that turn has ended, the message becomes a turn of its own; so it does if
    the turn is somebody else's and a policy names one of the two. A repeat with the same ``client_id`` is the same
    message.
    """

    turn: str
    content: str
    client_id: Id | None = None
    metadata: dict[str, Any] = {}


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


# From the server: replies ----------------------------------------------------------------------------------------


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


# From the server: the events of a turn ---------------------------------------------------------------------------


class TurnPayload(Out, frozen=True, kw_only=True):
    """Base of the events of a turn. ``position`` is the position to resume after."""

    block: str
    conversation: str
    turn: str
    position: str = ""


class ThoughtPayload(TurnPayload, frozen=True, kw_only=True):
    """Reasoning of model call number ``step``, from character ``offset`` of its reasoning on."""

    step: int
    offset: int
    text: str


class ThoughtEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="thought"):
    """Reasoning that the provider discloses."""

    payload: ThoughtPayload


class ChatPayload(TurnPayload, frozen=True, kw_only=True):
    """A piece of text. With the role ``assistant`` it is text of model call number ``step``, from character ``offset``
    of that text on; the answer is the text of all steps. With the role ``user`` it is a whole message that a person
    sent into the turn.
    """

    role: Literal["assistant", "user"] = "assistant"
    step: int = 0
    offset: int = 0
    text: str
    message_id: str = ""


class ChatEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="chat"):
    """Text of an answer, or a steering message."""

    payload: ChatPayload


class TextResetPayload(TurnPayload, frozen=True, kw_only=True):
    """The ``step`` whose text and reasoning are no longer valid."""

    step: int


class TextResetEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="text_reset"):
    """Drop the text and reasoning of a step: it follows again, because a model call was repeated."""

    payload: TextResetPayload


class ToolCallPayload(TurnPayload, frozen=True, kw_only=True):
    """A call of a tool. ``client`` means that the client runs it."""

    call: str
    name: str
    arguments: dict[str, Any]
    step: int = 0
    client: bool = False


class ToolCallEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="tool_call"):
    """The model calls a tool."""

    payload: ToolCallPayload


class ToolResultPayload(TurnPayload, frozen=True, kw_only=True):
    """The output of a call, as the model receives it. ``error_kind`` is set if the call failed. ``stored`` is set if
    ``output`` is shortened and the whole result is stored.
    """

    call: str
    name: str
    output: str = ""
    error: bool = False
    error_kind: str = ""
    stored: StoredResult | None = None


class ToolResultEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="tool_result"):
    """A call has ended."""

    payload: ToolResultPayload


class ApprovalRequestPayload(TurnPayload, frozen=True, kw_only=True):
    """A person must decide about a call by ``expires_at``. ``detail`` is what to show to the person. ``arguments`` are
    left out in the list of all approvals, which has no ``position``.
    """

    call: str
    name: str
    hash: str
    question: str
    approval: str = ""
    arguments: dict[str, Any] | None = None
    asked_at: datetime | None = None
    expires_at: datetime | None = None
    reminded_at: datetime | None = None
    detail: ApprovalDetail | None = None


class ApprovalRequestEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="approval_request"):
    """A call waits for a person. The answer is ``approval_response``."""

    payload: ApprovalRequestPayload


class ApprovalSettledPayload(TurnPayload, frozen=True, kw_only=True):
    """The decision about a call. ``by`` is the identity, or ``deadline``; ``withdrawn`` says why there was none."""

    call: str
    approval: str = ""
    allow: bool
    by: str
    scope: ApprovalScope = "once"
    answer: str = ""
    withdrawn: WithdrawalReason = ""


class ApprovalSettledEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="approval_settled"):
    """A call was decided about, or waits no longer."""

    payload: ApprovalSettledPayload


class TurnEndedPayload(TurnPayload, frozen=True, kw_only=True):
    """The turn ended and is stored. If it failed, ``code`` and ``message`` say why, and ``detail`` says more to the
    owner. ``context`` is the number of input tokens of the last model call, ``cost`` is in millionths of a US dollar.
    """

    reason: FinishReason
    message_id: str | None = None
    usage: UsageCount
    code: ErrorCode | None = None
    message: str = ""
    detail: str = ""
    context: int = 0
    cost: int | None = None
    answered_by: str = ""


class TurnEndedEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="turn_ended"):
    """The last event of a turn."""

    payload: TurnEndedPayload


# From the server: states and changes -----------------------------------------------------------------------------


class AgentStatus(TurnPayload, frozen=True, kw_only=True, tag_field="kind", tag="agent"):
    """An agent's own status under ``name``, such as ``hud``: ``data`` for programs, ``text`` for people."""

    name: str
    data: dict[str, Any] = {}
    text: str = ""


TurnState = Literal["queued", "running", "parked", "finished"]


class TurnStatus(Out, frozen=True, kw_only=True, tag_field="kind", tag="turn"):
    """A turn began, waits for a person, or has ended."""

    block: str
    conversation: str
    turn: str
    status: TurnState
    reason: FinishReason | None = None


class ConversationStatus(Out, frozen=True, kw_only=True, tag_field="kind", tag="conversation"):
    """A conversation is new, was renamed, or has new messages."""

    block: str
    conversation: str
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    message_count: int = 0


class BlockActivity(Out, frozen=True, kw_only=True, tag_field="kind", tag="block"):
    """The present activity of a block. ``changed`` means that its settings changed, or that it was created or removed:
    ask for it again.
    """

    block: str
    status: BlockStatusName = "SLEEPING"
    current_task: str | None = None
    error: str | None = None
    changed: bool = False


class WorkerStatus(Out, frozen=True, kw_only=True, tag_field="kind", tag="worker"):
    """A worker, if it is ``alive``. ``trouble`` keeps it from its work."""

    worker: str
    worker_kind: WorkerKind
    host: str = ""
    alive: bool = True
    draining: bool = False
    restarts: int = 0
    trouble: str = ""
    unstored: int = 0


class BudgetReset(Out, frozen=True, kw_only=True, tag_field="kind", tag="budget_reset"):
    """The owner reset a budget that was used up."""

    measure: BudgetMeasure
    window: str
    block: str = ""
    by: str = ""


StatusPayload = AgentStatus | TurnStatus | ConversationStatus | BlockActivity | WorkerStatus | BudgetReset


class StatusEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="status"):
    """A state, by its ``kind``."""

    payload: StatusPayload


class BankruptPayload(Out, frozen=True, kw_only=True):
    """The budget of ``block`` ("" for all blocks) or of one ``turn`` is used up: ``used`` of ``limit``, micro-USD for
    ``spend`` and calls for ``loops``, in the ``window``. ``opens_at`` is the end of the window.
    """

    measure: BudgetMeasure
    window: str
    block: str = ""
    turn: str = ""
    used: int
    limit: int
    opens_at: datetime | None = None


class BankruptEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="bankrupt"):
    """A budget is used up: no model is asked on it until it opens again."""

    payload: BankruptPayload


class PanicPayload(Out, frozen=True, kw_only=True):
    """The state: with ``on``, everything is stopped. ``by`` says who did that."""

    on: bool
    by: str = ""


class PanicEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="panic"):
    """The whole platform was stopped, or released."""

    payload: PanicPayload


ClientMessage = SendChat | SendSteer | SendCancel | ApprovalResponse | Subscribe | Unsubscribe | Ping
"""All envelopes that a client may send."""

TurnMessage = (
    ThoughtEnvelope
    | ChatEnvelope
    | TextResetEnvelope
    | ToolCallEnvelope
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
