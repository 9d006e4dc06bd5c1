"""The messages of a turn: the inbox items, the journal entries and the feed events.

The journal is the authoritative record of a running turn. The feed is what clients display; it can be rebuilt from
the journal.
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline.contracts.approvals.messages import (
    DECIDED_BY_DEADLINE,
    ApprovalDetail,
    ApprovalScope,
    WithdrawalReason,
    approval_id,
    describe_decider,
)
from trunkline.contracts.conversations.messages import (
    ForkedFrom,
    Message,
    ReasoningBlock,
    ToolCall,
    Usage,
)
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.contracts.tools.messages import StoredResult, ToolOutcome, ToolSchema
from trunkline.errors import ErrorCode
from trunkline_bus import Payload

FinishReason = Literal["stop", "tool_calls", "max_tokens", "content_filter", "cancelled", "stopped", "error"]
"""The reason a turn or a model call ended."""


# The inbox ---------------------------------------------------------------------------------------------------


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """The step at which a forked turn branches off from another turn. If ``says`` is true, the request's message is a
    new message of a person and follows the transcript before that step. Otherwise the request's message repeats the
    last message of that transcript.
    """

    origin: ForkedFrom
    says: bool = False


class ResponseRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request of OpenAI's Responses API that a turn answers. Only the gateway reads it.

    ``created_at`` is the time of the request, in Unix seconds. Without ``stored`` the response cannot be retrieved by
    its id. ``background`` is true if the client did not wait for the response. ``previous`` is the id of the response
    that this one continues, None if there is none. ``parameters`` are the parameters of the request, as the response
    repeats them.
    """

    created_at: int = 0
    stored: bool = True
    background: bool = False
    previous: str | None = None
    parameters: dict[str, Any] = {}


class TurnRequested(Payload, frozen=True, kw_only=True, tag="turn.requested.v1"):
    """A message that the gateway accepted and that a turn answers.

    ``message`` is the person's message, sent by the identity ``actor`` through ``channel``. ``trigger`` is the cause
    of the turn: ``message`` if a person sent it. ``preceding`` holds the client's messages before ``message``, such
    as the results of its tools; if the client sends results and no text, the last result is ``message``.
    ``preceding`` is unset if there are none, so that older records keep their bytes. ``history`` replaces the stored
    conversation, for a client that sends its whole transcript, as OpenAI's clients do. ``begins`` is true if this
    message starts the conversation, so that its id was unknown before. ``one_shot`` is true if the client gives no
    sign that it will continue the conversation (see ``AppendConversation``); unset otherwise. If ``fork`` is set, the
    monitor takes the transcript from the journal of the turn that ``fork`` names.

    ``client_tools`` are tools that the client runs: a call to one ends the turn with finish reason ``tool_calls``.
    ``permissions`` are the scopes of the sender's credential (``tools:*``, ``memory:/path/*``), which bound the
    turn's tool calls; unset in a record of an earlier version.

    ``model`` (``adapter/model``), ``max_tokens`` (of one answer), ``temperature`` and ``shows`` hold for this turn
    only; None selects the configured value. ``parameters`` are further parameters of the model (``top_p``); those that
    the model does not take are not sent. ``instructions`` is a system message for this turn only, which the
    conversation does not store. ``tool_choice`` holds for the turn's first model call and names tools of
    the client; ``response_format`` holds for every model call. These four are unset if the client gives none. ``shows``
    is the channel's description of the form in which a person sees an answer; unset if the channel gives none.
    ``response`` is set if the turn answers a request of OpenAI's Responses API.
    ``traceparent`` is the W3C trace context of the request.
    """

    turn: str
    block: str
    conversation: str
    message: Message
    actor: str
    channel: str
    permissions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    trigger: Literal["message", "webhook", "schedule"] = "message"
    history: tuple[Message, ...] | None = None
    preceding: tuple[Message, ...] | msgspec.UnsetType = msgspec.UNSET
    begins: bool = False
    one_shot: bool | msgspec.UnsetType = msgspec.UNSET
    client_tools: tuple[ToolSchema, ...] = ()
    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    parameters: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    instructions: str | msgspec.UnsetType = msgspec.UNSET
    tool_choice: ToolChoice | msgspec.UnsetType = msgspec.UNSET
    response_format: ResponseFormat | msgspec.UnsetType = msgspec.UNSET
    shows: str | msgspec.UnsetType = msgspec.UNSET
    response: ResponseRequest | msgspec.UnsetType = msgspec.UNSET
    traceparent: str | None = None
    fork: Fork | None = None


class TurnSteered(Payload, frozen=True, kw_only=True, tag="turn.steered.v1"):
    """A message for a running turn, delivered to the model at the turn's next step. If the turn has ended,
    ``request`` starts a new turn.
    """

    turn: str
    request: TurnRequested


class TurnCancelRequested(Payload, frozen=True, kw_only=True, tag="turn.cancel.v1"):
    """A request to end a turn. ``now`` interrupts the model call and the tools; ``after_step`` lets the running step
    finish. ``of_block`` is true if the whole block was stopped; unset if only this turn was.
    """

    turn: str
    by: str
    mode: Literal["now", "after_step"] = "now"
    of_block: bool | msgspec.UnsetType = msgspec.UNSET


class ApprovalDecided(Payload, frozen=True, kw_only=True, tag="turn.approval.v1"):
    """A person's decision about a parked call. The decision holds only for the call whose hash is ``call_hash``.
    ``by`` is ``deadline`` if no decision was made in time. ``scope`` extends an approval to calls like this one.

    For a question, ``allow`` is true and ``answer`` is the answer; ``allow`` is false if the person declines to
    answer. An answer approves no call: the hash of a question never equals the hash of a call.
    """

    turn: str
    call: str
    call_hash: str
    allow: bool
    by: str
    scope: ApprovalScope = "once"
    answer: str = ""


InboxItem = TurnRequested | TurnSteered | TurnCancelRequested | ApprovalDecided


# The journal -------------------------------------------------------------------------------------------------


class StatusShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn.status"):
    """A status of the agent under ``name``, such as ``hud``: ``data`` is for programs, ``text`` for people.

    A status belongs to the turn and to no message. It is displayed and never stored with the conversation.
    """

    name: str
    data: dict[str, Any] = {}
    text: str = ""


NOT_STORED = StatusShown(
    name="storage",
    data={"stored": False},
    text="The answer is not stored yet: memory cannot be written now. It is kept, and stored as soon as memory can be.",
)
"""The status shown if an answer is complete and memory cannot store it yet. The journal does not record this status,
because it describes the present.
"""


COMPACTION_STATUS = "compaction"
"""The name of the status that says that a conversation is or was compacted."""


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
    of the text, the bootstrap line first; unset in a record of an earlier version.
    """

    request: TurnRequested
    model: str
    context: tuple[Message, ...] = ()
    statuses: tuple[StatusShown, ...] | msgspec.UnsetType = msgspec.UNSET
    parallel: int | msgspec.UnsetType = msgspec.UNSET
    derived: bool | msgspec.UnsetType = msgspec.UNSET
    summary_record: SummaryRecord | msgspec.UnsetType = msgspec.UNSET
    parts: tuple[RecordedPart, ...] | msgspec.UnsetType = msgspec.UNSET


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


class TurnParked(msgspec.Struct, frozen=True, kw_only=True, tag="parked"):
    """The turn waits for a person's decision and occupies no worker."""


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


class TurnFinished(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="finished"):
    """The turn ended and its conversation is stored. ``message_id`` is the id of the last stored assistant message.
    The other fields are as in ``TurnEnded``.
    """

    reason: FinishReason
    message_id: str | None = None
    usage: Usage = Usage()
    code: ErrorCode | None = None
    detail: str = ""
    context: int = 0
    cost: int | None = None
    answered_by: str = ""


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
    | TurnParked
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


# The feed ----------------------------------------------------------------------------------------------------


class TextDelta(msgspec.Struct, frozen=True, kw_only=True, tag="text.delta"):
    """Text of step ``step``, starting at character ``offset`` of the step's text. An ``offset`` below the length
    already received repeats text that the reader has.
    """

    step: int
    offset: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, kw_only=True, tag="reasoning.delta"):
    """Reasoning that the provider discloses, starting at character ``offset`` of the step's reasoning."""

    step: int
    offset: int
    text: str


class TextReset(msgspec.Struct, frozen=True, kw_only=True, tag="text.reset"):
    """Discard the text and reasoning of this step, because its model call is repeated."""

    step: int


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool.started"):
    """A tool call of the model. ``client`` is true if the client must run the call."""

    step: int
    call: ToolCall
    client: bool = False


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool.ended"):
    """The result of a tool call, as the model receives it. ``error_kind`` is the kind of error
    (``TOOL_ERROR_KINDS``). ``stored`` is set if ``output`` is shortened and the complete result is stored.
    """

    step: int
    call_id: str
    name: str
    output: str = ""
    error: bool = False
    error_kind: str = ""
    stored: StoredResult | msgspec.UnsetType = msgspec.UNSET


class ApprovalRequested(msgspec.Struct, frozen=True, kw_only=True, tag="approval.requested"):
    """A person must decide about a call by ``expires_at``. ``id`` names the approval in lists and commands.
    ``detail`` is the preview of the call. ``id`` and ``detail`` are unset in items of an earlier version.
    """

    call: ToolCall
    call_hash: str
    question: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    asked_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    detail: ApprovalDetail | msgspec.UnsetType = msgspec.UNSET


class ApprovalSettled(msgspec.Struct, frozen=True, kw_only=True, tag="approval.settled"):
    """A decision about a call. ``by`` names the decider; ``deadline`` means that no decision was made in time.
    ``scope`` is unset if the decision holds for this call only. ``answer`` is unset if the decision is no answer to a
    question. ``id`` is the approval's id, unset in items of an earlier version.
    """

    call_id: str
    allow: bool
    by: str
    scope: ApprovalScope | msgspec.UnsetType = msgspec.UNSET
    answer: str | msgspec.UnsetType = msgspec.UNSET
    id: str | msgspec.UnsetType = msgspec.UNSET


def approval_requested(turn: str, call: ToolCall, request: ApprovalAsked) -> ApprovalRequested:
    """Return the event that shows an approval to people."""
    return ApprovalRequested(
        call=call,
        call_hash=request.call_hash,
        question=request.question,
        id=_id_of(turn, request),
        asked_at=request.asked_at,
        expires_at=request.expires_at,
        detail=request.detail,
    )


def _id_of(turn: str, request: ApprovalAsked) -> str | msgspec.UnsetType:
    at = request.asked_at
    return at if isinstance(at, msgspec.UnsetType) else approval_id(turn, request.call_id, at)


def approval_settled(turn: str, recorded: ApprovalRecorded, request: ApprovalAsked | None) -> ApprovalSettled:
    """Return the event that shows the decision about an approval to people."""
    return ApprovalSettled(
        call_id=recorded.call_id,
        allow=recorded.allow,
        by=recorded.by,
        scope=recorded.scope,
        answer=recorded.answer,
        id=msgspec.UNSET if request is None else _id_of(turn, request),
    )


class MessageSteered(msgspec.Struct, frozen=True, kw_only=True, tag="turn.steered"):
    """A message was added to the running turn."""

    message: Message


class TurnEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn.ended"):
    """The turn ended and is stored. If ``code`` is set the turn failed: ``sentence`` is the fixed text of that code,
    and ``detail`` is the cause for the owner, without secrets and addresses. ``context`` is the number of input
    tokens of the last model call, 0 if the provider does not count them. ``cost`` is in millionths of a US dollar;
    None if a model has no price. ``answered_by`` is the model that answered last (``adapter/model``), "" if none did.
    """

    reason: FinishReason
    message_id: str | None = None
    usage: Usage = Usage()
    code: ErrorCode | None = None
    sentence: str | None = None
    detail: str = ""
    context: int = 0
    cost: int | None = None
    answered_by: str = ""


FeedEvent = (
    TextDelta
    | ReasoningDelta
    | TextReset
    | ToolStarted
    | ToolEnded
    | ApprovalRequested
    | ApprovalSettled
    | MessageSteered
    | StatusShown
    | TurnEnded
)


class FeedItem(Payload, frozen=True, kw_only=True, tag="feed.item.v1"):
    """An event at position ``index`` of ``epoch``. Within an epoch the indexes count up from 0 without gaps.

    A new epoch repeats the finished steps in full from offset 0. A reader that trims what it has shown therefore
    misses nothing and repeats nothing, however many items the previous owner sent.

    ``number`` is the event's position, from 0, among the events recorded in the turn's journal, not counting text. It
    is the same in every epoch, so it identifies what a reader has been shown even if the feed lost the item. It is
    unset for text, for events shown before they are recorded, and for the end of the turn.
    """

    turn: str
    epoch: int
    index: int
    event: FeedEvent
    number: int | msgspec.UnsetType = msgspec.UNSET


class TurnFact(Payload, frozen=True, kw_only=True, tag="turn.fact.v1"):
    """A turn started, parked or finished. Statistics, memory and dashboards consume these facts. ``reason`` is set
    for a finished turn.

    ``model`` (``adapter/model``) answered, and ``context`` are the input tokens of its last call; 0 if the client sent
    its whole transcript. ``summary_record`` is the id of the summary record that the call used, "" for none. These
    three are set for a finished turn.
    """

    turn: str
    block: str
    conversation: str
    fact: Literal["started", "parked", "finished"]
    reason: FinishReason | None = None
    model: str = ""
    context: int = 0
    summary_record: str = ""
    detail: dict[str, Any] = {}
