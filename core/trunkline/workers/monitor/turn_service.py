"""Where lanes and runners meet the world: finds a turn its lane, its briefing, its model, and settles its items."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from opentelemetry import trace

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.streams import FAILOVER_SECONDS
from trunkline.contracts.turns.context import TurnInfo, TurnMiddleware
from trunkline.contracts.turns.feed_events import JournalTranslator
from trunkline.contracts.turns.messages import (
    JournalEntry,
    TextDelta,
    TextReset,
    TurnFact,
    TurnFinished,
    TurnParked,
    TurnRecord,
    TurnRequested,
    TurnResumed,
    TurnStarted,
)
from trunkline.contracts.turns.subjects import FEED, TURN_FACT
from trunkline.errors import ErrorCode, ModelError
from trunkline.plugins import Plugins
from trunkline.telemetry import semconv
from trunkline.telemetry.instruments import Instruments
from trunkline.telemetry.turn_metrics import TurnMetrics
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher, PublishedApprovals, affected_calls
from trunkline.workers.monitor.block_status import BlockStatusPublisher
from trunkline.workers.monitor.context_builder import ContextBuilder, TurnContext
from trunkline.workers.monitor.conversation_queue import ConversationQueue, TurnRun
from trunkline.workers.monitor.feed_writer import FeedRegistry, FeedWriter
from trunkline.workers.monitor.fork_history import with_fork_history
from trunkline.workers.monitor.inbox_item import HeldItem, nak_all
from trunkline.workers.monitor.journal import Fenced, Journal
from trunkline.workers.monitor.mailbox import is_immediate_cancel
from trunkline.workers.monitor.membership import Membership
from trunkline.workers.monitor.message_writer import MessageWriter
from trunkline.workers.monitor.model_call import ModelCallConfig, model_attributes
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline.workers.monitor.parked_turns import ParkedTurn, ParkedTurnCache
from trunkline.workers.monitor.runner import RunnerDeps, TurnRunner
from trunkline.workers.monitor.slots import TurnSlots
from trunkline.workers.monitor.tool_caller import ToolCaller
from trunkline.workers.monitor.turn import Phase, Turn
from trunkline.workers.monitor.turn_messages import append_request
from trunkline_bus import Bus, BusError, RemoteFault, remote_parent, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.monitor")

MAX_IDLE_QUEUES = 512

_FACTS: Mapping[type, Literal["started", "parked", "finished"]] = {
    TurnStarted: "started",
    TurnParked: "parked",
    TurnFinished: "finished",
}


class TurnService:
    """Runs the turns of all conversations that come in through ``offer``."""

    def __init__(
        self,
        *,
        bus: Bus,
        worker: str,
        tasks: TaskGroup,
        plugins: Plugins,
        models: ModelRegistry,
        terms: ModelCallConfig,
        briefer: ContextBuilder,
        feeds: FeedRegistry,
        pulse: BlockStatusPublisher,
        roster: Membership,
        limit: int,
        tool_silence: float,
        window: float,
        patience: float,
        approvals: ApprovalPublisher,
        max_calls: int,
        parallel_calls: int,
        release: Callable[[HeldItem], None],
        ran: Callable[[TurnRequested], None],
    ) -> None:
        self._bus = bus
        self._worker = worker
        self._tasks = tasks
        self._plugins = plugins
        self._models = models
        self._terms = terms
        self._briefer = briefer
        self._feeds = feeds
        self._resting = ParkedTurnCache(feeds.close)
        self._pulse = pulse
        self._roster = roster
        self._slots = TurnSlots(limit)
        self._actor = ToolCaller(bus, tool_silence)
        self._storing = MessageWriter(bus)
        self._window = window
        self._patience = patience
        self._approvals = approvals
        self._max_calls = max_calls
        self._parallel_calls = parallel_calls
        self._release = release
        self._ran = ran
        self._tally = TurnMetrics(Instruments("trunkline.monitor"))
        self._lanes: dict[str, ConversationQueue] = {}
        self._runners: set[TurnRunner] = set()
        self._leaving: dict[str, float] = {}
        """Until when the new owner of a conversation's partition is asked to wait for the turn that runs here."""
        self._draining = False
        self._idle = anyio.Event()

    # Lanes ---------------------------------------------------------------------------------------------------

    async def offer(self, held: HeldItem) -> None:
        """Take an item into its conversation's lane."""
        conversation = held.conversation
        self._leaving.pop(conversation, None)
        lane = self._lanes.pop(conversation, None)
        if lane is None:
            lane = ConversationQueue(self, Journal(self._bus, self._worker, conversation))
        self._lanes[conversation] = lane  # the lately used ones are last
        lane.offer(held)
        if not lane.working and not self._draining:
            lane.working = True
            self._tasks.start_soon(self._work, conversation, lane)

    async def _work(self, conversation: str, lane: ConversationQueue) -> None:
        try:
            await lane.work()
        except Fenced as error:
            log.info("conversation %s has another owner now: %s", conversation, error)
            self._forget(conversation)
        finally:
            lane.working = False
            self._idle.set()
            self._forget_idle_queues()
        if lane.closed:
            self._forget(conversation)
            await nak_all(lane.drop())

    def _forget(self, conversation: str) -> None:
        self._lanes.pop(conversation, None)
        self._leaving.pop(conversation, None)

    def _forget_idle_queues(self) -> None:
        for conversation, lane in list(self._lanes.items())[: max(0, len(self._lanes) - MAX_IDLE_QUEUES)]:
            if not lane.working and not lane.waiting:
                del self._lanes[conversation]

    def release_partition(self, partition: int) -> list[HeldItem]:
        """Begin nothing more of a partition, and return what has not begun. What runs is ended here, and told of in
        ``finishing``; what another owner may write to is forgotten."""
        returned: list[HeldItem] = []
        for conversation, lane in tuple(self._lanes.items()):
            if lane.partition == partition:
                returned.extend(lane.close())
                if lane.working:
                    self._leaving[conversation] = anyio.current_time() + self._patience
                else:
                    self._forget(conversation)
        return returned

    async def drop_stale_items(self) -> None:
        """Let go of what waits here in vain, until cancelled. A monitor that stood still, or was cut off, is told by
        nobody that it has lost a partition."""
        while True:
            await anyio.sleep(FAILOVER_SECONDS)
            for lane in tuple(self._lanes.values()):
                try:
                    if await lane.has_stale_items():
                        self._drop_stale(lane)
                except BusError as error:
                    log.debug("whether somebody else went on could not be seen: %s", error)

    def _drop_stale(self, lane: ConversationQueue) -> None:
        for held in lane.drop():
            log.info("conversation %s has another owner now: %s is let go", held.conversation, held.id)
            if self._lanes.get(held.conversation) is lane:
                self._forget(held.conversation)

    @property
    def finishing_conversations(self) -> tuple[str, ...]:
        """The conversations whose turns run here though their partition was left; not for ever, so that a message
        for a very long turn is not kept waiting: then its new owner takes the turn over."""
        now = anyio.current_time()
        return tuple(conversation for conversation, until in self._leaving.items() if now < until)

    @property
    def unstored_count(self) -> int:
        """How many answers wait for memory longer than they should."""
        return self._storing.late_count

    async def drain(self) -> None:
        """Begin nothing more, give back what has not begun, and return when what runs is done."""
        self._draining = True
        for lane in tuple(self._lanes.values()):
            await nak_all(lane.close())
        while any(lane.working for lane in self._lanes.values()):
            self._idle = anyio.Event()
            await self._idle.wait()

    def cancel_all(self, by: str) -> None:
        """Have every turn that runs here end now."""
        for runner in self._runners:
            runner.cancel(by)

    def release(self, held: HeldItem) -> None:
        """The item is somebody else's now."""
        self._release(held)

    async def settle(self, held: HeldItem) -> None:
        """The item is done."""
        await held.finish()
        self._release(held)

    def slot(self, begun: Callable[[], Awaitable[bool]]) -> AbstractAsyncContextManager[None]:
        """See ``Desk.slot``."""
        return self._slots.acquire(begun)

    async def is_finishing(self, worker: str, conversation: str) -> bool:
        """See ``Desk.is_finishing``."""
        return await self._roster.is_finishing(worker, conversation)

    # Turns ---------------------------------------------------------------------------------------------------

    async def run(self, run: TurnRun) -> None:
        """See ``Desk.run``."""
        request = run.request
        error: str | None = "interrupted"
        self._pulse.turn_started(request.block, request.turn)
        attributes: dict[str, str | int] = {
            semconv.GEN_AI_OPERATION: "invoke_agent",
            semconv.GEN_AI_AGENT_NAME: request.block,
            semconv.GEN_AI_CONVERSATION_ID: request.conversation,
            semconv.TURN: request.turn,
            semconv.EPOCH: run.epoch,
        }
        try:
            with (
                remote_parent(request.traceparent),
                start_span(
                    tracer,
                    f"{semconv.INVOKE_AGENT} {request.block}",
                    kind=trace.SpanKind.CONSUMER,
                    attributes=attributes,
                ) as span,
            ):
                await self._run(run)
                if run.turn.code is not None:
                    span.set_status(trace.StatusCode.ERROR, run.turn.code)
                error = run.turn.code
        except BaseExceptionGroup as failures:
            failure = _deciding_failure(failures)
            if isinstance(failure, Fenced):
                error = None  # the turn is another monitor's, and no failure of this one
            raise failure from failures
        finally:
            self._pulse.turn_ended(request.block, request.turn, error)
            self._ran(request)

    async def _run(self, run: TurnRun) -> None:
        rest = run.resting
        feed = rest.feed if rest is not None else self._open_feed(run)
        teller = rest.teller if rest is not None else JournalTranslator()
        put_down = False
        try:
            await self._execute(run, feed, teller)
            put_down = self._keep_parked(run, feed, teller)
        finally:
            if not put_down:
                self._feeds.close(feed)

    async def _execute(self, run: TurnRun, feed: FeedWriter, teller: JournalTranslator) -> None:
        """The turn until it is done or parked."""
        request = run.request
        if run.turn.phase is Phase.NEW and request.fork is not None:
            request = await with_fork_history(self._bus, request, request.fork)
        briefing = await self._briefer.build(request, run.known)
        choice = self._choose(briefing)
        if isinstance(choice, SelectedModel):
            asked = model_attributes(choice.adapter.name, choice.adapter.vendor, choice.model)
            trace.get_current_span().set_attributes(asked)
        runner = TurnRunner(
            run.turn, briefing, choice, feed, self._runner_deps(run, briefing), run.mailbox, teller
        )
        first: tuple[JournalEntry, ...] = (TurnResumed(),) if run.resting is None else ()
        if run.turn.phase is Phase.NEW:
            first = (await self._started(request, briefing, choice),)
        elif run.turn.phase is Phase.THINKING and (
            _continues(choice) or any(is_immediate_cancel(c.item) for c in run.controls)
        ):
            runner.begun = await self._partial_text(run)
        self._runners.add(runner)
        try:
            await self._with_middleware(run, briefing, lambda: runner.run(first, run.controls))
        finally:
            self._runners.discard(runner)

    def _open_feed(self, run: TurnRun) -> FeedWriter:
        request = run.request
        return self._feeds.open(request.block, request.conversation, request.turn, run.epoch)

    async def _started(
        self, request: TurnRequested, briefing: TurnContext, choice: SelectedModel | ModelError
    ) -> TurnStarted:
        label = choice.label if isinstance(choice, SelectedModel) else ""
        context, statuses = await self._briefer.context_messages(briefing, label)
        return TurnStarted(
            request=request,
            model=label,
            context=context,
            statuses=statuses or msgspec.UNSET,
            parallel=self._parallel_calls,
            derived=_derived(choice),
        )

    def _keep_parked(self, run: TurnRun, feed: FeedWriter, teller: JournalTranslator) -> bool:
        """Keep a turn that is parked for whoever decides next. Returns whether it is kept."""
        end = run.journal.last_seq
        if run.turn.phase is not Phase.PARKED or end is None:
            return False
        self._resting.put(run.request.turn, ParkedTurn(run.turn, run.epoch, end, feed, teller, run.said))
        return True

    def take_parked(self, turn: str, end: int | None) -> ParkedTurn | None:
        """See ``Desk.resting``."""
        return self._resting.take(turn, end)

    async def _with_middleware(
        self, run: TurnRun, briefing: TurnContext, proceed: Callable[[], Awaitable[None]]
    ) -> None:
        """The turn with the plugins' middleware around it, the first plugin's outermost."""
        info = self._info(run.turn, briefing)
        for owned in reversed(self._plugins.turn_middleware()):
            proceed = _wrap(owned.item, info, proceed)
        await proceed()

    def _runner_deps(self, run: TurnRun, briefing: TurnContext) -> RunnerDeps:
        async def record(entries: tuple[JournalEntry, ...]) -> None:
            await run.journal.write(run.request, run.epoch, entries)
            self._count(run.request.turn, run.epoch, entries)
            for entry in entries:
                await self.publish_fact(run.request, entry)
            await self._approvals.try_publish(run.turn, run.said, affected_calls(entries))

        async def settle(held: HeldItem) -> None:
            if held is not run.carrier:
                await self.settle(held)

        return RunnerDeps(
            models=self._models,
            actor=self._actor,
            record=record,
            store=self._storing.store,
            settle=settle,
            stop=lambda turn: self._plugins.stop_turn(self._info(turn, briefing)),
            terms=self._terms,
            window=self._window,
            max_calls=self._max_calls,
            patience=self._approvals.decision_timeout(run.request),
            commands=True,
        )

    def _info(self, turn: Turn, briefing: TurnContext) -> TurnInfo:
        model = turn.started.model if turn.started else ""
        info = self._briefer.info(briefing, model)
        return replace(info, step=turn.step, input_tokens=turn.last_input_tokens)

    def _choose(self, briefing: TurnContext) -> SelectedModel | ModelError:
        try:
            preference = briefing.preferred_model
            if briefing.request.model is None:
                info = self._info(Turn(), briefing)
                preference = self._plugins.select_model(info, preference or "") or preference
            return self._models.choose(preference)
        except ModelError as error:
            return error

    async def _partial_text(self, run: TurnRun) -> str:
        """The text of the interrupted model call, as far as people have seen it."""
        text = ""
        keys = {"conversation": run.request.conversation, "turn": run.request.turn}
        async for stored in self._bus.history(FEED, after=0, **keys):
            event = stored.data.event
            if isinstance(event, TextReset) and event.step == run.turn.step:
                text = ""
            elif isinstance(event, TextDelta) and event.step == run.turn.step and event.offset <= len(text):
                text = text[: event.offset] + event.text
        return text

    async def publish_fact(self, request: TurnRequested, entry: JournalEntry) -> None:
        """See ``Desk.tell``."""
        fact = _FACTS.get(type(entry))
        if fact is None:
            return
        reason = entry.reason if isinstance(entry, TurnFinished) else None
        told = TurnFact(
            turn=request.turn,
            block=request.block,
            conversation=request.conversation,
            fact=fact,
            reason=reason,
        )
        try:
            await self._bus.publish(TURN_FACT, told, block=request.block, fact=fact)
        except BusError as error:
            log.debug("a fact about turn %s was not told: %s", request.turn, error)

    async def publish_approvals(self, turn: Turn, said: PublishedApprovals) -> None:
        """See ``Desk.tell_approvals``."""
        await self._approvals.publish_missing(turn, said)

    def _count(self, turn: str, epoch: int, entries: tuple[JournalEntry, ...]) -> None:
        record = TurnRecord(turn=turn, epoch=epoch, owner=self._worker, entries=entries)
        self._tally.record(record, utc_now())

    async def give_up(
        self, turn: Turn, missing: tuple[JournalEntry, ...], epoch: int, journal: Journal
    ) -> None:
        """See ``Desk.give_up``: what it has is stored, and it ends with the code ``internal``."""
        request = turn.request
        assert request is not None
        try:
            await self._storing.store(append_request(turn), _no_notice)
        except RemoteFault as fault:
            log.error("turn %s, which was given up, could not be stored: %s", request.turn, fault)
        end = TurnFinished(reason="error", usage=turn.usage, code=ErrorCode.INTERNAL)
        await journal.write(request, epoch, (*missing, end))
        self._count(request.turn, epoch, (*missing, end))
        turn.apply(end)
        await self._approvals.try_publish(turn, PublishedApprovals())
        feed = self._feeds.open(request.block, request.conversation, request.turn, epoch)
        await feed.emit_journaled(*JournalTranslator().translate(end))
        self._feeds.close(feed)


async def _no_notice() -> None:
    """Of a turn that was given up people hear at its end."""


def _derived(choice: SelectedModel | ModelError) -> bool | msgspec.UnsetType:
    return True if isinstance(choice, SelectedModel) and choice.adapter.derived else msgspec.UNSET


def _continues(choice: SelectedModel | ModelError) -> bool:
    return isinstance(choice, SelectedModel) and choice.adapter.continues


def _wrap(
    middleware: TurnMiddleware, info: TurnInfo, proceed: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    return lambda: middleware(info, proceed)


def _deciding_failure(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure that decides what becomes of the turn: losing it counts before everything else."""
    flat: list[BaseException] = []
    for failure in failures.exceptions:
        flat.append(_deciding_failure(failure) if isinstance(failure, BaseExceptionGroup) else failure)
    return next((failure for failure in flat if isinstance(failure, Fenced)), flat[0])
