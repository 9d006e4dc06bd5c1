"""The turn as a state machine: journal entries in, commands out. This module uses no I/O, clock or randomness.

The table TRANSITIONS defines the whole protocol; ``docs/reference/turn.md`` is generated from it. A turn's state is its
journal applied in order, so a new owner that replays the journal reaches the state of the former owner::

    turn = Turn()
    for entry in journal:           # the entries that all owners recorded
        turn.apply(entry)
    entries, commands = turn.advance(Resumed())
    # write `entries` by compare-and-set, then carry out `commands`; pass their results to the next `advance`

A command is carried out only after the entries that plan it are on disk.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from trunkline.contracts.agents.messages import AgentReport
from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.tools.messages import QuestionAnswer, ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    AgentAwaited,
    AgentReportRecorded,
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallPlanned,
    SteerRecorded,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnParked,
    TurnPreempted,
    TurnResumed,
    TurnStarted,
    denial_text,
)
from trunkline.contracts.turns.messages import FinishReason, TurnRequested
from trunkline.errors import ErrorCode
from trunkline.policy import ActorPermissions
from trunkline.policy.turn_permissions import initial_permissions, narrowed_by_steering
from trunkline.workers.monitor.steps import Step, ToolAction
from trunkline_bus import key_of


class Phase(Enum):
    """The state of a turn."""

    NEW = "new"
    READY = "ready"
    THINKING = "thinking"
    ACTING = "acting"
    PARKED = "parked"
    PREEMPTED = "preempted"
    CLOSING = "closing"
    DONE = "done"


class TurnProtocolError(Exception):
    """The turn's phase does not allow an entry: the journal or its writer is wrong."""


# Commands ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model for this step."""

    step: int


@dataclass(frozen=True, slots=True)
class RunToolCall:
    """Have a tools worker run the call under this ledger key.

    ``approved`` is the hash of the call that a person approved, ``answers`` are people's answers to the call's
    questions, ``reports`` the results of the agents' tasks that it started. With ``again`` a former owner may have sent
    the call. ``permissions`` are the scopes that limit the call.
    """

    call: ToolCall
    key: str
    approved: str | None = None
    again: bool = False
    answers: tuple[QuestionAnswer, ...] = ()
    permissions: tuple[str, ...] = ()
    reports: tuple[AgentReport, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreTurn:
    """Store the turn's messages; then the turn is finished for ``reason``."""

    reason: FinishReason
    code: ErrorCode | None = None

    def end(self, turn: "Turn", message_id: str | None) -> TurnFinished:
        """The entry of a turn that was stored."""
        return TurnFinished(
            reason=self.reason, message_id=message_id, usage=turn.usage, code=self.code, detail=turn.detail,
            context=turn.last_input_tokens, cost=turn.cost, answered_by=turn.answered_by,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParkTurn:
    """Stop working on the turn until a decision, or the result of an agent, arrives through the inbox."""


Command = CallModel | RunToolCall | StoreTurn | ParkTurn

StopRule = Callable[["Turn"], str | None]
"""Returns the reason why a turn must not take its next step; None to let it. Pure."""


# State -------------------------------------------------------------------------------------------------------


class Turn:
    """A turn's state. Read its attributes freely; change it only by ``apply`` and ``advance``."""

    def __init__(self) -> None:
        self.phase = Phase.NEW
        self.entries: list[JournalEntry] = []
        """The applied entries, in the journal's order."""
        self.request: TurnRequested | None = None
        self.started: TurnStarted | None = None
        self.permissions = ActorPermissions(())
        """The scopes that limit the turn's calls: the intersection of the permissions of all people whose messages the
        turn follows."""
        self.steps: list[Step] = []
        self.usage = Usage()
        self.last_input_tokens = 0
        self.cost: int | None = None
        self.answered_by = ""
        """The cost of the turn's model calls in millionths of a US dollar; None as soon as one call has no price."""
        self.summary_record: SummaryRecord | None = None
        """The record whose summary the model receives in place of the conversation's first messages."""
        self.early: list[Message] = []
        """Messages steered in before the first answer."""
        self.pending: list[Message] = []
        """Messages steered in during a model call."""
        self.reason: FinishReason = "stop"
        self.code: ErrorCode | None = None
        self.detail = ""
        self.preemptions = 0
        """How often the turn gave up its slot for another turn."""
        self.stopping = False
        self.cancelled: CancelRecorded | None = None
        """The entry that cancelled the turn, if it was cancelled."""
        self.finished: TurnFinished | None = None

    @property
    def step(self) -> int:
        """The number of the step that is due or running, which is the number of answered steps."""
        return len(self.steps)

    @property
    def actions(self) -> tuple[ToolAction, ...]:
        """The tool calls of the last answer."""
        return self.steps[-1].actions if self.steps else ()

    def has_message(self, message_id: str) -> bool:
        """Report whether this message was already taken into the turn."""
        assert self.request is not None
        taken = [message.id for step in self.steps for message in step.steered]
        return message_id in {
            self.request.message.id,
            *(m.id for m in (*self.early, *self.pending)),
            *taken,
        }

    def accepts(self, entry: JournalEntry) -> bool:
        """Report whether the table allows the entry now. A turn that is stopping takes no further
        messages."""
        return type(entry) in TRANSITIONS[self.phase] and not (
            self.stopping and isinstance(entry, SteerRecorded)
        )

    def apply(self, entry: JournalEntry) -> None:
        """Apply an entry of the journal. Raises TurnProtocolError when the phase does not allow it."""
        following = TRANSITIONS[self.phase].get(type(entry))
        if following is None:
            raise TurnProtocolError(f"{type(entry).__name__} in phase {self.phase.value}")
        _apply_state(self, entry)
        self.entries.append(entry)
        self.phase = following if isinstance(following, Phase) else following(self)

    def advance(
        self, *inputs: JournalEntry, stop: StopRule = lambda turn: None
    ) -> tuple[tuple[JournalEntry, ...], tuple[Command, ...]]:
        """Apply inputs; return the entries to record, including the plan, and the commands to carry out once
        they are recorded.

        Inputs that arrive too late are dropped: a tool's result after a cancel, a second decision. ``stop`` is
        called before each step is planned.
        """
        taken = []
        for entry in inputs:
            if self.accepts(entry):
                self.apply(entry)
                taken.append(entry)
        plan = tuple(self._plan(stop)) if taken else ()
        for entry in plan:
            self.apply(entry)
        commands = tuple(self._command(entry) for entry in plan)
        if taken and self.phase is Phase.CLOSING:
            commands = (StoreTurn(self.reason, self.code),)
        return (*taken, *plan), commands

    def _plan(self, stop: StopRule) -> Iterable[JournalEntry]:
        """Yield the entries that must be recorded before the next commands."""
        if self.phase is Phase.READY:
            enough = stop(self)
            yield CancelRecorded(by=enough, mode="after_step") if enough else ModelCallPlanned(step=self.step)
        elif self.phase is Phase.ACTING:
            step = self.steps[-1]
            for action in islice(step.due.values(), self._free_slots(step)):
                yield ToolPlanned(call=action.call, key=action.key)
            if not step.due and not step.running:
                yield TurnParked()

    def _free_slots(self, step: Step) -> int:
        """Return how many more calls of the step may run."""
        limit = self.started.parallel if self.started is not None else None
        return max(0, limit - len(step.running)) if isinstance(limit, int) else len(step.due)

    def _command(self, planned: JournalEntry) -> Command:
        match planned:
            case ModelCallPlanned():
                return CallModel(planned.step)
            case ToolPlanned():
                action = _action(self, planned.call.id)[1]
                scopes = self.permissions.scopes
                return RunToolCall(
                    planned.call,
                    planned.key,
                    action.approved,
                    action.again,
                    action.answers,
                    scopes,
                    action.reports,
                )
            case _:
                return ParkTurn()


# Application of entries --------------------------------------------------------------------------------------


def _apply_state(turn: Turn, entry: JournalEntry) -> None:
    match entry:
        case TurnStarted():
            turn.started, turn.request, turn.permissions = (
                entry,
                entry.request,
                initial_permissions(entry.request),
            )
            turn.summary_record = entry.summary_record or None
        case TurnResumed():
            _note_resumed(turn)
        case ModelCallFinished():
            _note_answer(turn, entry)
        case ModelCallFailed():
            turn.reason, turn.code, turn.detail = "error", entry.code, entry.detail
            _keep_partial(turn, entry.partial)
        case CancelRecorded():
            _note_cancel(turn, entry)
        case SteerRecorded():
            turn.permissions = narrowed_by_steering(turn.permissions, entry)
            _note_steered(turn, entry.message)
        case ToolPlanned():
            _note_of_call(turn, entry.call.id, entry)
        case ToolFinished() | ApprovalAsked() | ApprovalRecorded() | AgentAwaited() | AgentReportRecorded():
            _note_of_call(turn, entry.call_id, entry)
        case TurnPreempted():
            turn.preemptions += 1
        case TurnFinished():
            turn.finished = entry
        case ModelCallPlanned() | TurnParked():
            pass


def _note_resumed(turn: Turn) -> None:
    _settle(turn)
    if turn.steps:
        turn.steps[-1].mark_all_unsent()


def _note_answer(turn: Turn, entry: ModelCallFinished) -> None:
    assert turn.request is not None
    client_tools = {tool.name for tool in turn.request.client_tools}
    actions = tuple(
        ToolAction(
            call, call.name in client_tools, key_of(turn.request.turn, str(entry.step), str(n), call.id)
        )
        for n, call in enumerate(entry.tool_calls)
    )
    messages, turn.pending = turn.pending, []
    step = Step(
        entry.step,
        entry.text,
        entry.reasoning,
        actions,
        entry.ran,
        commanded=entry.commanded,
        derived=_derived(turn),
        steered=messages,
        reasoning_blocks=entry.reasoning_blocks,
    )
    turn.steps.append(step)
    turn.usage = turn.usage + entry.usage
    turn.cost = _total_cost(turn, 0 if entry.commanded else entry.cost)
    turn.last_input_tokens = entry.usage.input_tokens
    turn.answered_by = entry.answered_by or turn.answered_by
    turn.summary_record = entry.summary_record or turn.summary_record
    turn.reason = entry.finish_reason


def _total_cost(turn: Turn, cost: int | None) -> int | None:
    """Return the turn's cost with this call, which is already among its steps."""
    if cost is None or (turn.cost is None and turn.step > 1):
        return None
    return cost + (turn.cost or 0)


def _derived(turn: Turn) -> bool:
    return turn.started is not None and turn.started.derived is True


def _note_cancel(turn: Turn, entry: CancelRecorded) -> None:
    turn.stopping, turn.cancelled = True, entry
    turn.reason = "cancelled" if entry.mode == "now" else "stopped"
    if entry.mode == "now":
        _keep_partial(turn, entry.partial)


def _keep_partial(turn: Turn, text: str) -> None:
    if text:
        turn.steps.append(Step(turn.step, text, partial=True, derived=_derived(turn)))
    _settle(turn)


def _note_steered(turn: Turn, message: Message) -> None:
    """Queue a message. A message that arrives during a model call follows the answer, because the call does not
    contain the message; any other message follows the last step."""
    turn.pending.append(message)
    if turn.phase is not Phase.THINKING:
        _settle(turn)


def _settle(turn: Turn) -> None:
    messages, turn.pending = turn.pending, []
    (turn.steps[-1].steered if turn.steps else turn.early).extend(messages)


def _note_of_call(turn: Turn, call_id: str, entry: JournalEntry) -> None:
    step, action = _action(turn, call_id)
    with step.update(action):
        match entry:
            case ToolPlanned():
                action.sent = True
            case ToolFinished():
                action.outcome = entry.outcome
            case ApprovalAsked():
                _note_question(action, entry)
            case ApprovalRecorded():
                _note_decision(action, entry)
            case AgentAwaited():
                action.awaited_task, action.again, action.sent = entry.task, True, False
            case AgentReportRecorded():
                _note_report(action, entry.report)


def _note_report(action: ToolAction, report: AgentReport) -> None:
    """Record the result of a task. The first report about a task counts."""
    if report.task not in {one.task for one in action.reports}:
        action.reports += (report,)


def _note_question(action: ToolAction, entry: ApprovalAsked) -> None:
    """Record a question.

    A call that asks for an approval has not run, and the approval covers the call as it was shown last. A call that
    asks a question has started, and its earlier approval stays valid.
    """
    if action.request is not None and action.decision is not None:
        action.earlier_decisions += ((action.request, action.decision),)
    action.request, action.decision = entry, None
    if entry.is_question:
        action.again = True
    else:
        action.approved, action.sent, action.again = None, False, False


def _note_decision(action: ToolAction, entry: ApprovalRecorded) -> None:
    asked = action.request
    if asked is None:
        raise TurnProtocolError(f"a decision about {entry.call_id} without a question")
    if action.decision is not None:
        return  # the first decision counts
    action.decision, action.sent = entry, False
    if asked.is_question:  # an answer approves nothing; without an answer the tool gets None
        text = entry.answer if entry.allow and isinstance(entry.answer, str) else None
        action.answers += (QuestionAnswer(question=asked.call_hash, by=entry.by, text=text),)
    elif entry.allow:
        action.approved = asked.call_hash
    else:
        text = denial_text(action.call.name, entry.by)
        action.outcome = ToolOutcome(
            call=action.key, status="error", output=text, error_kind="approval_denied"
        )


def _action(turn: Turn, call_id: str) -> tuple[Step, ToolAction]:
    step = turn.steps[-1] if turn.steps else None
    action = step.action(call_id) if step is not None else None
    if step is not None and action is not None:
        return step, action
    raise TurnProtocolError(f"no call {call_id} in step {turn.step - 1}")


# Transitions that depend on the state ------------------------------------------------------------------------


def _after_answer(turn: Turn) -> Phase:
    """Run tools when the model called Trunkline's, continue when a message was steered in, else close."""
    return Phase.ACTING if turn.steps[-1].open else _after_results(turn)


def _after_tool(turn: Turn) -> Phase:
    """Continue when every call has its result. A turn that is stopping waits neither for a person nor for an
    agent."""
    step = turn.steps[-1]
    owed = step.due or step.running or (step.waiting and not turn.stopping)
    return Phase.ACTING if owed else _after_results(turn)


def _after_results(turn: Turn) -> Phase:
    if turn.stopping:
        turn.reason = "stopped" if turn.actions else turn.reason
        return Phase.CLOSING
    if any(action.client for action in turn.actions):
        turn.reason = "tool_calls"
        return Phase.CLOSING
    return Phase.READY if turn.actions or turn.steps[-1].steered else Phase.CLOSING


def _after_cancel(turn: Turn) -> Phase:
    """End now, or after the answer and its calls."""
    return Phase.CLOSING if turn.reason == "cancelled" else Phase.THINKING


def _after_cancel_of_calls(turn: Turn) -> Phase:
    """End now, or after the calls."""
    return Phase.CLOSING if turn.reason == "cancelled" else _after_tool(turn)


def _after_preemption(turn: Turn) -> Phase:
    """Continue with the calls of the last answer, or with the next model call."""
    return Phase.ACTING if turn.steps and turn.steps[-1].open else Phase.READY


Next = Phase | Callable[[Turn], Phase]

TRANSITIONS: Mapping[Phase, Mapping[type, Next]] = {
    Phase.NEW: {TurnStarted: Phase.READY},
    Phase.READY: {
        ModelCallPlanned: Phase.THINKING,
        SteerRecorded: Phase.READY,
        CancelRecorded: Phase.CLOSING,
        TurnPreempted: Phase.PREEMPTED,
        TurnResumed: Phase.READY,
        TurnFinished: Phase.DONE,
    },
    Phase.THINKING: {
        ModelCallFinished: _after_answer,
        ModelCallFailed: Phase.CLOSING,
        SteerRecorded: Phase.THINKING,
        CancelRecorded: _after_cancel,
        TurnPreempted: Phase.PREEMPTED,
        TurnResumed: Phase.READY,
        TurnFinished: Phase.DONE,
    },
    Phase.ACTING: {
        ToolPlanned: Phase.ACTING,
        ToolFinished: _after_tool,
        ApprovalAsked: _after_tool,
        ApprovalRecorded: _after_tool,
        AgentAwaited: _after_tool,
        AgentReportRecorded: _after_tool,
        TurnParked: Phase.PARKED,
        SteerRecorded: Phase.ACTING,
        CancelRecorded: _after_cancel_of_calls,
        TurnPreempted: Phase.PREEMPTED,
        TurnResumed: Phase.ACTING,
        TurnFinished: Phase.DONE,
    },
    Phase.PARKED: {
        ApprovalRecorded: _after_tool,
        AgentReportRecorded: _after_tool,
        CancelRecorded: Phase.CLOSING,
        TurnResumed: Phase.ACTING,
        TurnFinished: Phase.DONE,
    },
    Phase.PREEMPTED: {TurnResumed: _after_preemption, TurnFinished: Phase.DONE},
    Phase.CLOSING: {TurnFinished: Phase.DONE, TurnResumed: Phase.CLOSING},
    Phase.DONE: {},
}
"""The phase that each entry leads to from each phase. A function decides when it depends on the turn's state.

``TurnFinished`` is allowed in every phase but the first and the last, because a turn that cannot run is given
up in any of them.
"""
