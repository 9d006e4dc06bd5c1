"""The envelopes of a turn's events."""

from datetime import datetime
from typing import Any, Literal

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope, WithdrawalReason
from trunkline.contracts.conversations.messages import Attachment
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.http.schemas.schema_base import Out
from trunkline.workers.gateway.http.schemas.turn_schemas import UsageCount
from trunkline.workers.gateway.socket.envelope_base import ServerEnvelope


class TurnPayload(Out, frozen=True, kw_only=True):
    """Base of the events of a turn. ``position`` is the position to resume after. ``lane`` is the turn's lane; the list
    of all approvals leaves it out.
    """

    block: str
    conversation: str
    turn: str
    position: str = ""
    lane: Lane | None = None


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


class ToolProgressPayload(TurnPayload, frozen=True, kw_only=True):
    """The progress of a call: a line about it, and live output of its programs, from character ``offset`` of all
    their output on. Output that came faster than it is sent is missing.
    """

    call: str
    note: str = ""
    offset: int = 0
    output: str = ""


class ToolProgressEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="tool_progress"):
    """A call is running. What it shows is for people; ``tool_result`` has the result."""

    payload: ToolProgressPayload


class ToolResultPayload(TurnPayload, frozen=True, kw_only=True):
    """The output of a call, as the model receives it. ``error_kind`` is set if the call failed. ``stored`` is set if
    ``output`` is shortened and the whole result is stored. ``files`` are those that the call gave to the person.
    """

    call: str
    name: str
    output: str = ""
    error: bool = False
    error_kind: str = ""
    stored: StoredResult | None = None
    files: tuple[Attachment, ...] = ()


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
