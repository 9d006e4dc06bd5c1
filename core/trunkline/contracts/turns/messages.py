"""The turn: what comes into the inbox, what the journal keeps, what the feed shows.

The journal is the truth while a turn runs; the feed is what people watch and may be asked for again.
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
from trunkline.contracts.conversations.messages import ForkedFrom, Message, ToolCall, Usage
from trunkline.contracts.tools.messages import StoredResult, ToolOutcome, ToolSchema
from trunkline.errors import ErrorCode
from trunkline_bus import Payload

FinishReason = Literal["stop", "tool_calls", "max_tokens", "content_filter", "cancelled", "stopped", "error"]
"""Why a turn ended."""


# The inbox ---------------------------------------------------------------------------------------------------


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """The step that a turn branches off from. With ``says`` its message is a new one, said after what was before
    that step; without, it only holds the place of the last message there.
    """

    origin: ForkedFrom
    says: bool = False


class TurnRequested(Payload, frozen=True, kw_only=True, tag="turn.requested.v1"):
    """A message that was accepted and wants an answer.

    ``history`` replaces the stored conversation (a client that sends its whole transcript, as OpenAI's do).
    ``preceding`` is what the client says before ``message``, such as its tools' results, the last of which is
    ``message`` itself where nobody said anything; unset where there is none, so that a record of before there was any
    is still the same bytes.
    ``begins`` says that the conversation begins with this message: before it nobody can have known its id.
    ``one_shot`` is set where nothing says that the client will ever go on (``AppendConversation``).
    ``client_tools`` are run by the client: a call to one ends the turn with finish reason ``tool_calls``.
    ``shows`` is what a person sees of an answer in this channel, by the channel's own words; unset where it says none.
    ``model`` and ``instructions`` hold for this turn only. With ``forked_from`` the monitor takes the transcript from
    that turn's journal; ``said`` is whether ``message`` is a person's new one, or stands for what came before the step.
    ``permissions`` are the scopes of the credential that sent it (``tools:*``, ``memory:/path/*``), within which its
    tool calls are kept; unset in a record of an earlier version.
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
    shows: str | msgspec.UnsetType = msgspec.UNSET
    traceparent: str | None = None
    fork: Fork | None = None


class TurnSteered(Payload, frozen=True, kw_only=True, tag="turn.steered.v1"):
    """A message to take in at the turn's next step; a turn that has ended takes it as a new one."""

    turn: str
    request: TurnRequested


class TurnCancelRequested(Payload, frozen=True, kw_only=True, tag="turn.cancel.v1"):
    """End the turn: ``now`` cuts the model and the tools, ``after_step`` lets the running step finish. ``of_block``: it
    was the whole block that somebody stopped; unset where it was this turn."""

    turn: str
    by: str
    mode: Literal["now", "after_step"] = "now"
    of_block: bool | msgspec.UnsetType = msgspec.UNSET


class ApprovalDecided(Payload, frozen=True, kw_only=True, tag="turn.approval.v1"):
    """A person's decision on a parked call; it holds only for the call with this hash. ``by`` is ``deadline`` when
    nobody decided in time. A yes may reach further than this call: ``scope``.

    A question is answered by ``answer`` with ``allow``, or nobody will answer it (``allow`` is false). That allows
    nothing: the hash of a question is no call's."""

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
    """The status of an agent, under a ``name`` such as ``hud``: ``data`` for programs, ``text`` as a person may
    read it.

    It belongs to the turn and to no message: it is shown, and never stored with the conversation.
    """

    name: str
    data: dict[str, Any] = {}
    text: str = ""


NOT_STORED = StatusShown(
    name="storage",
    data={"stored": False},
    text="The answer is not stored yet: memory cannot be written now. It is kept, and stored as soon as memory can be.",
)
"""Shown when an answer is complete and memory does not take it. The journal does not tell it: it is about now."""


class TurnStarted(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """The turn began. ``context`` is what the model is given besides the conversation, fixed for the turn; one with
    the role ``user`` is told just before the person's message. ``statuses`` are what people are shown of it; unset
    where there are none, so that a record of before there were any is still the same bytes. ``parallel`` is how many of
    its tool calls may run at once; unset for as many as the model makes, as in a record of an earlier version.
    ``derived``: what answers only repeats what it is given; unset where it does not."""

    request: TurnRequested
    model: str
    context: tuple[Message, ...] = ()
    statuses: tuple[StatusShown, ...] | msgspec.UnsetType = msgspec.UNSET
    parallel: int | msgspec.UnsetType = msgspec.UNSET
    derived: bool | msgspec.UnsetType = msgspec.UNSET


class TurnResumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed"):
    """A new owner took the turn over."""


class ModelCallPlanned(msgspec.Struct, frozen=True, kw_only=True, tag="model_call_planned"):
    """The model is about to be asked for step number ``step`` (from 0)."""

    step: int


class ProviderToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that the model's side ran by itself during a call, and what came of it.

    ``at`` is how many characters of the call's text came before it.
    """

    call: ToolCall
    output: str = ""
    error: bool = False
    at: int = 0


class ModelCallFinished(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="model_call_finished"
):
    """The model answered. ``text`` is kept also when ``tool_calls`` came with it.

    ``first_chunk`` is how long its first piece took, in seconds; 0 when that is not known. ``commanded``: no model was
    asked, since a person's command stood in for it. ``cost`` is the tokens times the configured price, in millionths of
    a US dollar; None when nobody has set a price for the model.
    """

    step: int
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    ran: tuple[ProviderToolResult, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    first_chunk: float = 0.0
    commanded: bool = False
    cost: int | None = None


class ModelCallFailed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="model_call_failed"):
    """The model did not answer to the end; ``partial`` is the text it had given, ``detail`` why, for people, without
    secrets."""

    step: int
    code: ErrorCode
    fault: str = ""
    detail: str = ""
    partial: str = ""


class ToolPlanned(msgspec.Struct, frozen=True, kw_only=True, tag="tool_planned"):
    """The call is about to be sent to a tools worker. ``key`` is its ledger key."""

    call: ToolCall
    key: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """The call ended; the model is given ``outcome.output``."""

    call_id: str
    outcome: ToolOutcome


class ApprovalAsked(msgspec.Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """A person must decide about the call before it runs, until ``expires_at``; ``detail`` is what they are shown.

    The last three are unset in a record of before there were any, so that it is still the same bytes."""

    call_id: str
    call_hash: str
    question: str
    asked_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    detail: ApprovalDetail | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_question(self) -> bool:
        """Report whether an answer is wanted, and not a yes or no."""
        return isinstance(self.detail, ApprovalDetail) and self.detail.is_question


class ApprovalRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="approval_recorded"):
    """The first decision about the call; later ones change nothing. ``scope`` is unset for this call alone, ``answer``
    where nothing was answered."""

    call_id: str
    allow: bool
    by: str
    scope: ApprovalScope | msgspec.UnsetType = msgspec.UNSET
    answer: str | msgspec.UnsetType = msgspec.UNSET


def denial_text(tool: str, by: str) -> str:
    """Return the text for the model and people about a call that a person did not allow."""
    if by == DECIDED_BY_DEADLINE:
        return f"Nobody decided about the call of {tool} in time, so it was not run. Do not repeat it unless asked to."
    return f"The call of {tool} was denied by {describe_decider(by)}. Do not repeat it unless asked to."


class TurnParked(msgspec.Struct, frozen=True, kw_only=True, tag="parked"):
    """Nothing is left to do until a person decides; the worker is free."""


class SteerRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="steered"):
    """A message came in while the turn ran and is given to the model at the next step. ``permissions`` are those of the
    credential that sent it; unset in a record of an earlier version."""

    message: Message
    permissions: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


class CancelRecorded(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_recorded"):
    """Somebody ended the turn. ``partial`` is the text that the running model call had given. ``of_block`` is as in
    ``TurnCancelRequested``."""

    by: str
    mode: Literal["now", "after_step"]
    partial: str = ""
    of_block: bool | msgspec.UnsetType = msgspec.UNSET


def withdrawal_reason(entry: CancelRecorded) -> WithdrawalReason:
    """Why nobody is asked any more once this is recorded."""
    if entry.of_block is True:
        return "block"
    return "cancelled" if entry.mode == "now" else "stopped"


class TurnFinished(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="finished"):
    """The turn ended and the conversation is stored; ``message_id`` is the stored last assistant message. The other
    fields are as in ``TurnEnded``."""

    reason: FinishReason
    message_id: str | None = None
    usage: Usage = Usage()
    code: ErrorCode | None = None
    detail: str = ""
    context: int = 0
    cost: int | None = None


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
    """One write to the journal: entries that belong together, by the owner of this epoch."""

    turn: str
    epoch: int
    owner: str
    entries: tuple[JournalEntry, ...]


# The feed ----------------------------------------------------------------------------------------------------


class TextDelta(msgspec.Struct, frozen=True, kw_only=True, tag="text.delta"):
    """Text of step ``step`` from character ``offset`` on. A repeat with an offset below what is known is an overlap."""

    step: int
    offset: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, kw_only=True, tag="reasoning.delta"):
    """Reasoning that the provider shows, from character ``offset`` of the step's reasoning on."""

    step: int
    offset: int
    text: str


class TextReset(msgspec.Struct, frozen=True, kw_only=True, tag="text.reset"):
    """Drop the text and reasoning of this step: its model call is asked again."""

    step: int


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool.started"):
    """A tool call of the model; ``client`` marks one that the client has to run."""

    step: int
    call: ToolCall
    client: bool = False


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="tool.ended"):
    """The call's result, as the model is given it. ``error_kind`` says what failed (``TOOL_ERROR_KINDS``). ``stored``:
    the whole of it is longer, and kept."""

    step: int
    call_id: str
    name: str
    output: str = ""
    error: bool = False
    error_kind: str = ""
    stored: StoredResult | msgspec.UnsetType = msgspec.UNSET


class ApprovalRequested(msgspec.Struct, frozen=True, kw_only=True, tag="approval.requested"):
    """Somebody has to decide about a call, until ``expires_at``. ``id`` names the question in lists and commands,
    ``detail`` is what to show of the call; both are unset in what an earlier version said."""

    call: ToolCall
    call_hash: str
    question: str
    id: str | msgspec.UnsetType = msgspec.UNSET
    asked_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    detail: ApprovalDetail | msgspec.UnsetType = msgspec.UNSET


class ApprovalSettled(msgspec.Struct, frozen=True, kw_only=True, tag="approval.settled"):
    """The call was decided about; ``by`` says by whom (``deadline``: nobody did in time). ``scope`` is unset for this
    call alone, ``answer`` where nothing was answered. ``id`` is the question's, unset in what an earlier version
    said."""

    call_id: str
    allow: bool
    by: str
    scope: ApprovalScope | msgspec.UnsetType = msgspec.UNSET
    answer: str | msgspec.UnsetType = msgspec.UNSET
    id: str | msgspec.UnsetType = msgspec.UNSET


def approval_requested(turn: str, call: ToolCall, asked: ApprovalAsked) -> ApprovalRequested:
    """Return the event that shows people a question."""
    return ApprovalRequested(
        call=call,
        call_hash=asked.call_hash,
        question=asked.question,
        id=_id_of(turn, asked),
        asked_at=asked.asked_at,
        expires_at=asked.expires_at,
        detail=asked.detail,
    )


def _id_of(turn: str, asked: ApprovalAsked) -> str | msgspec.UnsetType:
    at = asked.asked_at
    return at if isinstance(at, msgspec.UnsetType) else approval_id(turn, asked.call_id, at)


def approval_settled(turn: str, recorded: ApprovalRecorded, asked: ApprovalAsked | None) -> ApprovalSettled:
    """Return the event that shows people a decision about this question."""
    return ApprovalSettled(
        call_id=recorded.call_id,
        allow=recorded.allow,
        by=recorded.by,
        scope=recorded.scope,
        answer=recorded.answer,
        id=msgspec.UNSET if asked is None else _id_of(turn, asked),
    )


class MessageSteered(msgspec.Struct, frozen=True, kw_only=True, tag="turn.steered"):
    """A message was taken into the running turn."""

    message: Message


class TurnEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="turn.ended"):
    """The turn is over and stored. With a ``code`` it failed, ``sentence`` is that code's fixed text, and ``detail``
    says why, for the owner, without secrets and addresses. ``context`` is how many tokens the last model call was
    given, 0 when the provider does not count. ``cost`` is in millionths of a US dollar; None when a model has no price.
    """

    reason: FinishReason
    message_id: str | None = None
    usage: Usage = Usage()
    code: ErrorCode | None = None
    sentence: str | None = None
    detail: str = ""
    context: int = 0
    cost: int | None = None


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
    """An event at position ``index`` of ``epoch``. Within an epoch the indexes count up from 0 without a hole.

    A new epoch shows finished steps again in full (offset 0), so a reader that trims what it has shown misses
    nothing and repeats nothing, whichever items the old owner managed to send.

    ``number`` is the event's place among those that the turn's journal tells, from 0, text not counted. It is the same
    in every epoch, so it says what a reader has been shown even where the feed lost it. Unset for text, for what is
    shown before it is recorded, and for the end.
    """

    turn: str
    epoch: int
    index: int
    event: FeedEvent
    number: int | msgspec.UnsetType = msgspec.UNSET


class TurnFact(Payload, frozen=True, kw_only=True, tag="turn.fact.v1"):
    """A turn began, parked or ended: for those who keep statistics, memories or dashboards."""

    turn: str
    block: str
    conversation: str
    fact: Literal["started", "parked", "finished"]
    reason: FinishReason | None = None
    detail: dict[str, Any] = {}
