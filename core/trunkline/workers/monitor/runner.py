"""Runs one turn: passes events to the state machine, records its entries, then carries out its commands.

All events pass through one queue, so only one task changes the machine. A command runs in its own task and puts
its result into the queue. No event is shown and no command is started before its entry is recorded.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import anyio
import msgspec
from anyio.abc import TaskGroup
from opentelemetry import trace

from trunkline.contracts.conversations.messages import AppendConversation, utc_now
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.models.adapter import ModelRequest
from trunkline.contracts.models.constraints import ToolChoice
from trunkline.contracts.models.token_estimate import estimate_tokens, estimate_tool_tokens
from trunkline.contracts.tools.messages import ToolOutcome, ToolProgress, ToolSchema
from trunkline.contracts.turns.feed_events import JournalTranslator, NumberedEvent
from trunkline.contracts.turns.feed_messages import NOT_STORED, ToolProgressed
from trunkline.contracts.turns.journal_messages import (
    AgentAwaited,
    ApprovalAsked,
    CancelRecorded,
    JournalEntry,
    ModelCallFailed,
    ModelCallFinished,
    OfferedTool,
    SteerRecorded,
    ToolFinished,
    TurnFinished,
    TurnPreempted,
    TurnResumed,
)
from trunkline.errors import ErrorCode, ModelError
from trunkline.telemetry import semconv
from trunkline.workers.monitor.claimed_item import ClaimedItem
from trunkline.workers.monitor.compaction_service import CompactionService
from trunkline.workers.monitor.context_builder import TurnContext
from trunkline.workers.monitor.feed_writer import FeedSink, TextStream, replayed_events
from trunkline.workers.monitor.mailbox import TurnMailbox, journal_entry_for
from trunkline.workers.monitor.model_call import ModelCallConfig, ModelCaller
from trunkline.workers.monitor.model_history import summarised_history
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline.workers.monitor.slots import TurnSlot
from trunkline.workers.monitor.tool_caller import ToolCaller
from trunkline.workers.monitor.tool_command import COMMAND as TOOL_COMMAND
from trunkline.workers.monitor.tool_command import answer_command, find_command
from trunkline.workers.monitor.turn import (
    CallModel,
    Command,
    ParkTurn,
    Phase,
    RunToolCall,
    StopRule,
    StoreTurn,
    Turn,
)
from trunkline.workers.monitor.turn_compaction import COMMAND as COMPACT_COMMAND
from trunkline.workers.monitor.turn_compaction import REBIRTH_COMMAND, TurnCompaction
from trunkline.workers.monitor.turn_messages import (
    append_request,
    last_answer_id,
    model_messages,
    new_messages,
)
from trunkline_bus import RemoteFault, Scope, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.monitor")

RecordCallback = Callable[[tuple[JournalEntry, ...]], Awaitable[None]]
StoreCallback = Callable[[AppendConversation, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Stores messages. Calls the callback once when storing takes longer than LATE_AFTER_SECONDS."""
SettleCallback = Callable[[ClaimedItem], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerDeps:
    """The objects and limits that all runners of a worker share.

    ``text_flush_seconds`` is the time for which text is gathered before it is shown, ``max_calls`` the
    largest number of tool calls of one answer that are run. ``compaction`` is None if no plugin compacts conversations.
    """

    models: ModelRegistry
    tool_caller: ToolCaller
    call_config: ModelCallConfig
    text_flush_seconds: float
    max_calls: int
    compaction: CompactionService | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerEnvironment:
    """The environment of one turn. A durable turn and the bare agent loop differ only in this.

    ``approval_timeout`` is the number of seconds to wait for a person's decision about a call. ``commands`` is true
    when people write the messages and may run a tool by ``/tool``. ``slot`` is the slot that the turn may have to give
    up; None for a turn without one.
    """

    record: RecordCallback
    store: StoreCallback
    settle: SettleCallback
    stop: StopRule
    approval_timeout: float
    commands: bool = False
    slot: TurnSlot | None = None


class TurnRunner:
    """One owner's run of one turn."""

    def __init__(
        self,
        turn: Turn,
        context: TurnContext,
        choice: SelectedModel | ModelError,
        feed: FeedSink,
        deps: RunnerDeps,
        environment: RunnerEnvironment,
        mailbox: TurnMailbox,
        translator: JournalTranslator,
    ) -> None:
        self.turn = turn
        self._mailbox = mailbox
        self._context = context
        self._choice = choice
        self._feed = feed
        self._translator = translator
        self._deps = deps
        self._environment = environment
        self._send, self._receive = anyio.create_memory_object_stream[JournalEntry | None](math.inf)
        self._text: TextStream | None = None
        self._scopes: set[anyio.CancelScope] = set()
        self._scope = Scope(
            block=context.request.block,
            conversation=context.request.conversation,
            turn=context.request.turn,
        )
        self._client_tools = frozenset(tool.name for tool in context.request.client_tools)
        self._offered: Sequence[ToolSchema] = ()
        """The tools of the last request."""
        self._recorded_tools: Sequence[ToolSchema] = ()
        """The tools that this run has recorded last."""
        self._partial_text = ""
        """Text of an interrupted model call that the next call continues, or that a cancel keeps."""

    async def run(
        self, first: Sequence[JournalEntry], controls: tuple[ClaimedItem, ...] = (), partial_text: str = ""
    ) -> None:
        """Start with these entries and run until the turn is done, parked or preempted.

        ``partial_text`` is the text of an interrupted model call that readers have. Raises Fenced (from
        ``record``) when the turn has another owner, and BusError when the bus stays unavailable.
        """
        self._partial_text = partial_text
        async with anyio.create_task_group() as tasks:
            await self._advance([*first], controls, tasks)
            self._mailbox.watch(lambda: self._send.send_nowait(None))
            if self._environment.slot is not None:
                self._environment.slot.watch(lambda: self._send.send_nowait(TurnPreempted()))
            while self.turn.phase not in (Phase.DONE, Phase.PARKED, Phase.PREEMPTED):
                await self._advance(*await self._next_input(), tasks)
            tasks.cancel_scope.cancel()

    def cancel(self, by: str) -> None:
        """End the turn now, as if a person had cancelled it; running work is cut."""
        self._send.send_nowait(CancelRecorded(by=by, mode="now"))

    async def _next_input(self) -> tuple[list[JournalEntry], tuple[ClaimedItem, ...]]:
        """Return the next input. Results of parallel tools that are already available are taken together."""
        entry = await self._receive.receive()
        if entry is None:
            claimed = self._mailbox.take()
            return [], (claimed,) if claimed is not None else ()
        entries = [entry]
        while isinstance(entry, ToolFinished) and self._receive.statistics().current_buffer_used:
            entry = self._receive.receive_nowait()
            if entry is None:
                self._send.send_nowait(None)
                break
            entries.append(entry)
        return entries, ()

    async def _advance(
        self, inputs: list[JournalEntry], controls: tuple[ClaimedItem, ...], tasks: TaskGroup
    ) -> None:
        """Give the inputs to the machine, record its entries, send them to the feed, and start its
        commands."""
        control_entries = [(claimed, journal_entry_for(claimed, self.turn)) for claimed in controls]
        inputs = [limited for entry in inputs for limited in self._within_limit(entry)]
        inputs = [*inputs, *(entry for _, entry in control_entries if entry is not None)]
        slot = self._environment.slot
        if slot is not None and slot.must_yield:
            inputs.append(TurnPreempted())  # the turn starts no further call; a second entry is dropped
        settled = [await self._cut_work(entry) for entry in inputs]
        entries, commands = self.turn.advance(*settled, stop=self._environment.stop)
        if entries:
            await self._environment.record(entries)
            await self._feed.emit_journaled(*self._feed_events(entries))
        for claimed, control in control_entries:
            too_late = isinstance(control, SteerRecorded) and control not in entries
            if not too_late:  # a late message stays in the mailbox and starts a new turn
                await self._environment.settle(claimed)
                self._mailbox.settle(claimed)
        for command in commands:
            self._start(command, tasks)

    def _within_limit(self, entry: JournalEntry) -> Iterable[JournalEntry]:
        """Return an answer together with the refusals of its excess calls.

        One record contains both, so that no later owner runs a call that an earlier one refused.
        """
        if not isinstance(entry, ModelCallFinished):
            return (entry,)
        return (entry, *refuse_excess_calls(entry, self._client_tools, self._deps.max_calls))

    def _feed_events(self, entries: tuple[JournalEntry, ...]) -> Iterable[NumberedEvent]:
        """Return the feed events of new entries. The first events of a new owner repeat all earlier events of the
        turn."""
        if isinstance(entries[0], TurnResumed):
            return replayed_events(self.turn, self._translator, partial_text=self._partial_text)
        return (event for entry in entries for event in self._translator.translate_new(entry))

    async def _cut_work(self, entry: JournalEntry) -> JournalEntry:
        """For an immediate cancel, cut the running work and add the text so far to the entry. For a preemption, cut the
        model call; its text stays in the feed. Tool calls run on, and their results stay in the effect ledger.
        """
        if isinstance(entry, TurnPreempted) and self.turn.accepts(entry):
            for scope in self._scopes:
                scope.cancel()
            if self._text is not None:
                await self._text.close()
        if not isinstance(entry, CancelRecorded) or entry.mode != "now":
            return entry
        for scope in self._scopes:
            scope.cancel()
        for action in self.turn.steps[-1].sent if self.turn.steps else ():
            await self._deps.tool_caller.cancel(action.key, f"cancelled by {entry.by}")
        if self.turn.phase not in (Phase.THINKING, Phase.PREEMPTED):
            return entry
        if self._text is None:  # a former owner of the turn streamed the text
            partial, self._partial_text = self._partial_text, ""
        else:
            partial = await self._text.close()
        return msgspec.structs.replace(entry, partial=partial)

    def _start(self, command: Command, tasks: TaskGroup) -> None:
        match command:
            case CallModel():
                tasks.start_soon(self._call_model, command)
            case RunToolCall():
                tasks.start_soon(self._run_tool, command)
            case StoreTurn():
                tasks.start_soon(self._store, command)
            case ParkTurn():
                pass

    async def _call_model(self, command: CallModel) -> None:
        if (tool_command := self._command(TOOL_COMMAND)) is not None:
            await self._answer_command(tool_command, command.step)
            return
        for name in (COMPACT_COMMAND, REBIRTH_COMMAND):
            if (compact_command := self._command(name)) is not None:
                await self._compact(name, compact_command, command.step)
                return
        if isinstance(self._choice, ModelError):
            log.warning("turn %s has no model: %s", self._scope.turn, self._choice)
            code, fault, detail = (
                self._choice.code,
                self._choice.fault,
                self._deps.call_config.explainer.describe(self._choice),
            )
            await self._send.send(ModelCallFailed(step=command.step, code=code, fault=fault, detail=detail))
            return
        partial_text, self._partial_text = self._partial_text, ""
        self._text = TextStream(
            self._feed, command.step, self._deps.text_flush_seconds, partial_text=partial_text
        )
        with self._cancellable():
            entry = await self._answer(self._choice, command.step, self._text, partial_text)
            await self._send.send(msgspec.structs.replace(entry, tools=self._newly_offered()))

    async def _answer(
        self, choice: SelectedModel, step: int, text: TextStream, partial_text: str
    ) -> ModelCallFinished | ModelCallFailed:
        """Call the model. A request that is too long is shortened before, or after the model refused it, once.

        The record of the compaction is in the answer's entry. If this monitor dies before, the next owner of the turn
        finds the stored record by the turn's id, and sends the same request (ADR 72).
        """
        compaction = self._compaction(choice)
        record = self.turn.summary_record
        request = self._request(choice, partial_text, record)
        if step == 0 and await compaction.is_too_long(request, partial(self._count_tokens, choice)):
            shorter = await compaction.shorten(record, "automatic")
            if shorter is not None:
                return await self._call(choice, step, text, partial_text, shorter)
        entry = await self._call(choice, step, text, partial_text, record)
        if not _is_overflow(entry, text):
            return entry
        shorter = await compaction.shorten(record, "overflow")
        return entry if shorter is None else await self._call(choice, step, text, partial_text, shorter)

    async def _call(
        self,
        choice: SelectedModel,
        step: int,
        text: TextStream,
        partial_text: str,
        record: SummaryRecord | None,
    ) -> ModelCallFinished | ModelCallFailed:
        deps = self._deps
        caller = ModelCaller(deps.models.ask(choice), choice, deps.call_config)
        used = {action.call.id for step in self.turn.steps for action in step.actions}
        request = self._request(choice, partial_text, record)
        self._offered = request.tools
        entry = await caller.call(request, step, text, used)
        if record == self.turn.summary_record or isinstance(entry, ModelCallFailed):
            return entry
        return msgspec.structs.replace(entry, summary_record=record)

    def _newly_offered(self) -> tuple[OfferedTool, ...]:
        """Return the tools of the last request; none if the journal has them from an earlier one."""
        if self._offered == self._recorded_tools:
            return ()
        self._recorded_tools = self._offered
        return tuple(OfferedTool(name=one.name, tokens=estimate_tool_tokens(one)) for one in self._offered)

    async def _count_tokens(self, choice: SelectedModel, request: ModelRequest) -> int | None:
        counted = await self._deps.models.count_tokens(choice, request)
        return estimate_tokens(request) if counted is None else counted

    def _compaction(self, choice: SelectedModel | ModelError) -> TurnCompaction:
        model = choice.label if isinstance(choice, SelectedModel) else ""
        return TurnCompaction(self._deps.compaction, self._context, model, self._feed.emit)

    async def _compact(self, name: str, command: str, step: int) -> None:
        """Answer ``/compact`` or ``/rebirth`` with what it did."""
        with self._cancellable():
            compaction, used = self._compaction(self._choice), self.turn.summary_record
            if name == REBIRTH_COMMAND:
                said = await compaction.answer_rebirth(command, used, self.turn.permissions)
            else:
                said = await compaction.answer_command(command, used)
            await self._send_answer(ModelCallFinished(step=step, text=said, commanded=True))

    def _command(self, name: str) -> str | None:
        """Return the text of a command that replaces the model's answer; None when there is none.

        A steering message ends its effect, and unreadable settings end the turn instead.
        """
        turn, profile = self.turn, self._context.profile
        steered = turn.early or turn.pending or any(step.steered for step in turn.steps)
        if steered or profile.problem or not self._environment.commands:
            return None
        return find_command(self._context.request, name)

    async def _answer_command(self, tool_command: str, step: int) -> None:
        context, self._partial_text = self._context, ""
        restricted = context.profile.tools.restricted
        entry = answer_command(
            tool_command, context.request.turn, self.turn.steps, context.all_tools, restricted
        )
        with self._cancellable():
            await self._send_answer(entry)

    async def _send_answer(self, entry: ModelCallFinished) -> None:
        """Show the text of a command's answer, and send the entry."""
        self._text = TextStream(self._feed, entry.step, self._deps.text_flush_seconds)
        if entry.text:
            self._text.add(entry.text)
        await self._text.flush()
        await self._send.send(entry)

    def _request(
        self, choice: SelectedModel, partial_text: str, record: SummaryRecord | None
    ) -> ModelRequest:
        assert self.turn.started is not None
        request, new = self._context.request, new_messages(self.turn)
        history = summarised_history(self._context.sent_history, record)
        return ModelRequest(
            messages=model_messages(self.turn.started.context, history, new),
            tools=self._context.schemas(new),
            model=choice.model,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            parameters=choice.accepted_parameters(request.parameters or {}),
            tool_choice=(request.tool_choice or ToolChoice()) if self.turn.step == 0 else ToolChoice(),
            response_format=request.response_format or None,
            partial=partial_text,
            block=request.block,
            conversation=request.conversation,
            turn=request.turn,
            budget_turn=request.budget_turn,
            actor=request.actor,
            permissions=self.turn.permissions.scopes,
            route=self.turn.started.route or None,
            adapter=choice.adapter.name,
        )

    async def _run_tool(self, command: RunToolCall) -> None:
        with self._cancellable():
            request = self._context.request
            origin = request.fork.origin.conversation if request.fork is not None else None
            show = partial(self._show_progress, self.turn.step, command.call.id)
            outcome = await self._deps.tool_caller.call(
                command, self._scope, request.actor, origin, show=show, budget_turn=request.budget_turn
            )
            await self._send.send(_result(command, outcome, self._environment.approval_timeout))

    async def _show_progress(self, step: int, call_id: str, progress: ToolProgress) -> None:
        """Send the progress of a call to the feed. An item that has a position is sent even if the call is cancelled:
        a missing position holds up the readers.
        """
        event = ToolProgressed(
            step=step,
            call_id=call_id,
            note=progress.note,
            offset=progress.offset,
            output=progress.output,
        )
        with anyio.CancelScope(shield=True):
            await self._feed.emit(event)

    async def _store(self, command: StoreTurn) -> None:
        """Store the conversation, then send the end of the turn: a turn is done only after it is stored."""
        request = append_request(self.turn)
        answer = last_answer_id(new_messages(self.turn, closing=True))
        end = command.end(self.turn, answer)
        try:
            with start_span(tracer, semconv.STORE):
                await self._environment.store(request, self._notify_late)
        except RemoteFault as fault:
            log.error("turn %s could not be stored: %s", self._scope.turn, fault)
            end = TurnFinished(reason="error", usage=self.turn.usage, code=ErrorCode.STORAGE_FAILURE)
        await self._send.send(end)

    async def _notify_late(self) -> None:
        """Notify clients, which have the whole answer, that the turn waits to be stored."""
        await self._feed.emit(NOT_STORED)

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Run work that an immediate cancel cuts."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)


def _is_overflow(entry: ModelCallFinished | ModelCallFailed, text: TextStream) -> bool:
    """Report whether the model refused the request as too long before the first event of its answer."""
    is_refused = isinstance(entry, ModelCallFailed) and entry.code is ErrorCode.CONTEXT_OVERFLOW
    return is_refused and not text.text and not text.reasoning


def _result(command: RunToolCall, outcome: ToolOutcome, approval_timeout: float) -> JournalEntry:
    if outcome.status == "approval":
        asked_at = utc_now()
        within = approval_timeout
        if not isinstance(outcome.within, msgspec.UnsetType):
            within = min(within, outcome.within)
        return ApprovalAsked(
            call_id=command.call.id,
            call_hash=outcome.call_hash,
            question=outcome.question,
            asked_at=asked_at,
            expires_at=asked_at + timedelta(seconds=within),
            detail=outcome.detail,
        )
    if outcome.status == "agent" and isinstance(outcome.task, str):
        return AgentAwaited(call_id=command.call.id, task=outcome.task)
    return ToolFinished(call_id=command.call.id, outcome=outcome)


def refuse_excess_calls(
    answer: ModelCallFinished, client_tools: Collection[str], limit: int
) -> Iterator[ToolFinished]:
    """Yield error results for the calls beyond the limit, so that every call has a result. Calls that the client runs
    are not refused."""
    ours = [call for call in answer.tool_calls if call.name not in client_tools]
    if len(ours) > limit:
        log.warning("an answer has %d tool calls; the first %d are run", len(ours), limit)
    for number, call in enumerate(ours[limit:], start=limit + 1):
        text = (
            f"{call.name} was not run: this is call {number} of {len(ours)} in one answer, and the first {limit} are "
            f"run. Call it again if it is still needed."
        )
        refused = ToolOutcome(call="", status="error", output=text, error_kind="rate_limited")
        yield ToolFinished(call_id=call.id, outcome=refused)
