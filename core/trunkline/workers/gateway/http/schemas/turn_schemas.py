"""The schemas of turns, and of the calls in them that wait for a person."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail, ApprovalScope, Settlement
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.turns.messages import FinishReason
from trunkline.workers.gateway.http.schemas.schema_base import Error, In, Out


class ForkRequest(In, frozen=True, kw_only=True):
    """A request to run a turn again from its model call number ``step``, counted from 0.

    The model, or the message at that step, may be another one.
    """

    step: Annotated[int, msgspec.Meta(ge=0)]
    model: str | None = None
    content: str | None = None


class CancelRequest(In, frozen=True, kw_only=True):
    """The way to end a turn: at once, or after the current step."""

    mode: Literal["now", "after_step"] = "now"


class DecisionRequest(In, frozen=True, kw_only=True):
    """A decision about a parked call.

    ``hash`` is the hash in the approval request. With ``scope`` an approval also covers similar
    calls, in this conversation or always. A question (``detail.kind``) takes an ``answer`` and needs no
    ``allow``; with ``allow`` false it is left unanswered.
    """

    hash: str
    allow: bool | None = None
    scope: ApprovalScope = "once"
    answer: str = ""


class UsageCount(Out, frozen=True, kw_only=True):
    """Tokens of a turn."""

    prompt_tokens: int
    completion_tokens: int


class ApprovalState(Out, frozen=True, kw_only=True):
    """A call that waits for a person's decision, or was decided.

    ``detail`` is the content to show to the person: a diff, a command, a message, or the arguments. Send a decision
    to ``/api/turns/{turn}/calls/{call}/decision`` with this ``hash``.
    """

    id: str
    turn: str
    call: str
    hash: str
    tool: str
    block: str
    conversation_id: str
    channel: str
    question: str
    detail: ApprovalDetail
    asked_at: datetime
    expires_at: datetime
    settled: Settlement | None = None
    arguments: dict[str, Any] | None = None


class ApprovalStates(Out, frozen=True, kw_only=True):
    """Approvals, the oldest first."""

    approvals: tuple[ApprovalState, ...]


class GrantStates(Out, frozen=True, kw_only=True):
    """The grants, as policies."""

    grants: tuple[Policy, ...]


class TurnDetail(Out, frozen=True, kw_only=True):
    """The state of a turn."""

    id: str
    conversation_id: str
    block: str
    status: Literal["queued", "running", "parked", "finished"]
    usage: UsageCount
    finish_reason: FinishReason | None = None
    message_id: str | None = None
    error: Error | None = None
