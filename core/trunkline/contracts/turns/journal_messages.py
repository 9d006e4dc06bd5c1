"""The journal entries of a turn. The journal is the authoritative record of a running turn."""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline.contracts.agents.messages import AgentReport
from trunkline.contracts.approvals.messages import (
    DECIDED_BY_DEADLINE,
    ApprovalDetail,
    ApprovalScope,
    WithdrawalReason,
    describe_decider,
)
from trunkline.contracts.conversations.messages import Message, ReasoningBlock, ToolCall, Usage
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.contracts.turns.messages import FinishReason, TurnOutcome, TurnRequested
from trunkline.contracts.turns.turn_route import TurnRoute
from trunkline.errors import ErrorCode
from trunkline_bus import Payload


class RecordedPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the turn's context: its source, and the length of its text in the context message. ``changing`` parts
    are in the message with the role ``user``, the others in the first system message. Empty lines separate the parts.
    """

    source: str
    characters: int
    changing: bool = False


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool whose definition was sent to a model. ``tokens`` is the estimated size of the definition."""

    name: str
    tokens: int


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The turn began. ``context`` is what the model receives besides the conversation, fixed for the turn; a context
    message with the role ``user`` is placed just before the person's message. ``statuses`` are the statuses shown to
    people; unset if there are none, so that older records keep their bytes. ``parallel`` is the largest number of
    tool calls that run at once; unset for no limit, as in a record of an earlier version. ``derived`` is true if the
    model adapter's answers only repeat their input; unset otherwise. ``summary_record`` is the record whose summary the
    model receives in place of the first messages; unset for none. ``parts`` are the parts of ``context`` in the order
    of the text, the bootstrap line first; unset in a record of an earlier version. ``route`` is what a turn router
    decided; unset if none did.
    """

    request: TurnRequested
    model: str
    context: tuple[Message, ...] = ()
    statuses: tuple[StatusShown, ...] | msgspec.UnsetType = msgspec.UNSET
    parallel: int | msgspec.UnsetType = msgspec.UNSET
    derived: bool | msgspec.UnsetType = msgspec.UNSET
    summary_record: SummaryRecord | msgspec.UnsetType = msgspec.UNSET
    parts: tuple[RecordedPart, ...] | msgspec.UnsetType = msgspec.UNSET
    route: TurnRoute | msgspec.UnsetType = msgspec.UNSET


class TurnResumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed"):
    """A new owner took over the turn."""


class ModelCallPlanned(msgspec.Struct, frozen=True, kw_only=True, tag="model_call_planned"):
    """The worker is about to call the model for step number ``step`` (from 0)."""

    step: int


class ProviderToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that the model provider ran during a model call, with its result.

    ``at`` is the number of characters of the model call's text that precede the tool call.
    """

    call: ToolCall
    output: str = ""
    error: bool = False
    at: int = 0


class ModelCallFinished(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="model_call_finished"
):
    """The model answered. ``text`` is kept also if the answer has ``tool_calls``. ``ran`` are the tool calls that the
    provider ran.

    ``first_chunk`` is the time to the first piece of the answer in seconds, 0 if unknown. ``commanded`` is true if no
    model was called because a person's command determined the step. ``cost`` is the tokens multiplied by the
    configured price, in millionths of a US dollar; None if the model has no price. ``reasoning_blocks`` is the part of
    the reasoning that the vendor requires back with the next step. ``summary_record`` is set if the conversation was
    compacted for this call, because the request was too long; it replaces that of ``TurnStarted`` from this call on.
    ``tools`` are the tools that the model was offered; empty if they are those of the model call before.
    ``late_reasoning`` is the number of characters at the end of the reasoning that came after the text began.
    ``answered_by`` is the model that answered (``adapter/model``), which a fallback may have been; "" if unknown.
    """

    step: int
    text: str = ""
    reasoning: str = ""
    late_reasoning: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    ran: tuple[ProviderToolResult, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    first_chunk: float = 0.0
    commanded: bool = False
    cost: int | None = None
    reasoning_blocks: tuple[ReasoningBlock, ...] = ()
    summary_record: SummaryRecord | None = None
    tools: tuple[OfferedTool, ...] = ()
    answered_by: str = ""


class ModelCallFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="model_call_failed"):
    """A model call failed. ``partial`` is the text received before the failure. ``detail`` is the cause for people;
    it contains no secrets. ``tools`` are as in ``ModelCallFinished``.
    """

    step: int
    code: ErrorCode
    fault: str = ""
    detail: str = ""
    partial: str = ""
    tools: tuple[OfferedTool, ...] = ()


class ToolPlanned(msgspec.Struct, frozen=True, kw_only=True, tag="tool_planned"):
    """The worker is about to send the call to a tools worker. ``key`` is the call's key in the effect ledger."""

    call: ToolCall
    key: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """The call ended. The model receives ``outcome.output``."""

    call_id: str
    outcome: ToolOutcome


class ApprovalAsked(msgspec.Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """A person must decide about the call before it runs, by ``expires_at``. ``detail`` is the preview shown to the
    person.

    ``asked_at``, ``expires_at`` and ``detail`` are unset in records of an earlier version, so that those keep their
    bytes.
    """

    call_id: str
    call_hash: str
    question: str
    asked_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    detail: ApprovalDetail | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_question(self) -> bool:
        """Report whether this is a question, which a person answers, and not a call to approve."""
        return isinstance(self.detail, ApprovalDetail) and self.detail.is_question


class ApprovalRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="approval_recorded"):
    """The first decision about the call; later decisions change nothing. ``scope`` is unset if the decision holds for
    this call only. ``answer`` is unset if the decision is no answer to a question. ``decided_at`` is the time at which
    the monitor received the decision; unset in a record of an earlier version.
    """

    call_id: str
    allow: bool
    by: str
    scope: ApprovalScope | msgspec.UnsetType = msgspec.UNSET
    answer: str | msgspec.UnsetType = msgspec.UNSET
    decided_at: datetime | msgspec.UnsetType = msgspec.UNSET


def denial_text(tool: str, by: str) -> str:
    """Return the text for the model and for people about a call that a person denied or did not decide in time."""
    if by == DECIDED_BY_DEADLINE:
        return f"Nobody decided about the call of {tool} in time, so it was not run. Do not repeat it unless asked to."
    return f"The call of {tool} was denied by {describe_decider(by)}. Do not repeat it unless asked to."


class AgentAwaited(msgspec.Struct, frozen=True, kw_only=True, tag="agent_awaited"):
    """The call waits for the result of a task of an agent. ``task`` is the turn of the task."""

    call_id: str
    task: str


class AgentReportRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="agent_report"):
    """A task that the call started has ended. The report may come before the call waits for it."""

    call_id: str
    report: AgentReport


class TurnParked(msgspec.Struct, frozen=True, kw_only=True, tag="parked"):
    """The turn waits for a person's decision, or for the task of an agent, and occupies no worker."""


class TurnPreempted(msgspec.Struct, frozen=True, kw_only=True, tag="preempted"):
    """The turn gave up its slot at a safe point and waits for another one. A model call that streamed was cut and is
    repeated; tool calls that were sent continue, and the turn takes their results when it goes on.
    """


class SteerRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="steered"):
    """A message arrived while the turn ran. The model receives it at the next step. ``permissions`` are the scopes of
    the sender's credential; unset in a record of an earlier version.
    """

    message: Message
    permissions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class CancelRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_recorded"):
    """The turn was cancelled. ``partial`` is the text of the interrupted model call. ``of_block`` is as in
    ``TurnCancelRequested``.
    """

    by: str
    mode: Literal["now", "after_step"]
    partial: str = ""
    of_block: bool | msgspec.UnsetType = msgspec.UNSET


def withdrawal_reason(entry: CancelRecorded) -> WithdrawalReason:
    """Return why the turn's open approvals are withdrawn once this entry is recorded."""
    if entry.of_block is True:
        return "block"
    return "cancelled" if entry.mode == "now" else "stopped"


class TurnFinished(TurnOutcome, frozen=True, kw_only=True, tag="finished"):
    """The turn ended and its conversation is stored. ``message_id`` is the id of the last stored assistant message."""


JournalEntry = (
    TurnStarted
    | TurnResumed
    | ModelCallPlanned
    | ModelCallFinished
    | ModelCallFailed
    | ToolPlanned
    | ToolFinished
    | ApprovalAsked
    | ApprovalRecorded
    | AgentAwaited
    | AgentReportRecorded
    | TurnParked
    | TurnPreempted
    | SteerRecorded
    | CancelRecorded
    | TurnFinished
)


class TurnRecord(Payload, frozen=True, kw_only=True, tag="journal.record.v1"):
    """One write to the journal: entries that are stored together, written by ``owner`` in ``epoch``."""

    turn: str
    epoch: int
    owner: str
    entries: tuple[JournalEntry, ...]
