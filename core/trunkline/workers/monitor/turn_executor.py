"""Runs the turns of this monitor, and ends those that cannot be run."""

import logging

from opentelemetry import trace

from trunkline.contracts.turns.feed_events import JournalTranslator
from trunkline.contracts.turns.journal_messages import JournalEntry, TurnFinished
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import ErrorCode
from trunkline.telemetry import semconv
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher
from trunkline.workers.monitor.claimed_item import ClaimedItem
from trunkline.workers.monitor.feed_writer import FeedRegistry, FeedWriter
from trunkline.workers.monitor.inbox import Inbox
from trunkline.workers.monitor.journal import Fenced, Journal
from trunkline.workers.monitor.message_writer import MessageWriter
from trunkline.workers.monitor.model_call import model_attributes
from trunkline.workers.monitor.model_registry import SelectedModel
from trunkline.workers.monitor.parked_turns import ParkedTurn, ParkedTurnCache
from trunkline.workers.monitor.runner import RunnerDeps, RunnerEnvironment, TurnRunner
from trunkline.workers.monitor.turn import Phase, Turn
from trunkline.workers.monitor.turn_messages import append_request
from trunkline.workers.monitor.turn_observer import TurnObserver
from trunkline.workers.monitor.turn_preparer import PreparedTurn, TurnPreparer
from trunkline.workers.monitor.turn_recorder import TurnRecorder
from trunkline.workers.monitor.turn_run import TurnRun
from trunkline_bus import RemoteFault

log = logging.getLogger(__name__)


class TurnExecutor:
    """Runs one turn per call; turns of different conversations may run concurrently."""

    def __init__(
        self,
        *,
        preparer: TurnPreparer,
        deps: RunnerDeps,
        observer: TurnObserver,
        recorder: TurnRecorder,
        approvals: ApprovalPublisher,
        messages: MessageWriter,
        feeds: FeedRegistry,
        inbox: Inbox,
    ) -> None:
        self._preparer = preparer
        self._deps = deps
        self._observer = observer
        self._recorder = recorder
        self._approvals = approvals
        self._messages = messages
        self._feeds = feeds
        self._inbox = inbox
        self._parked = ParkedTurnCache(feeds.close)
        self._runners: set[TurnRunner] = set()

    async def run(self, run: TurnRun) -> None:
        """Run the turn until it is done, parked or preempted. Raises Fenced and BusError."""
        try:
            with self._observer.observe(run):
                await self._run(run)
        except BaseExceptionGroup as failures:
            raise _deciding_failure(failures) from failures

    async def _run(self, run: TurnRun) -> None:
        # The feed is opened before anything can fail and is closed in every case, because the registry repairs every
        # open feed. A turn that was parked here continues with its feed and translator, so that its readers keep their
        # positions. The feed of a new owner begins a new epoch and repeats all events (ADR 0004, 0024). A crash leaves
        # an incomplete feed: the next owner of the conversation sends the rest.
        parked = run.parked
        feed = parked.feed if parked is not None else self._open_feed(run.request, run.epoch)
        translator = parked.translator if parked is not None else JournalTranslator()
        cached = False
        try:
            await self._execute(run, await self._preparer.prepare(run), feed, translator)
            # Only a turn that has parked without an error is cached: in all other cases only the journal's state is
            # valid (ADR 0005). The cache only saves the replay. After a crash the cache is empty, and the turn is
            # replayed when the decision arrives.
            cached = self._keep_parked(run, feed, translator)
        finally:
            if not cached:
                self._feeds.close(feed)

    async def _execute(
        self, run: TurnRun, prepared: PreparedTurn, feed: FeedWriter, translator: JournalTranslator
    ) -> None:
        choice = prepared.choice
        if isinstance(choice, SelectedModel):
            attributes = model_attributes(choice.adapter.name, choice.adapter.vendor, choice.model)
            trace.get_current_span().set_attributes(attributes)
        if (route := prepared.context.route) is not None:
            decided = {semconv.ROUTE: route.category, semconv.ROUTE_REASON: route.reason}
            trace.get_current_span().set_attributes(decided)
        environment = self._environment(run, prepared)
        runner = TurnRunner(
            run.turn, prepared.context, choice, feed, self._deps, environment, run.mailbox, translator
        )
        self._runners.add(runner)
        try:
            await prepared.hooks.run_with_middleware(
                run.turn, lambda: runner.run(prepared.first_entries, run.controls, prepared.partial_text)
            )
        finally:
            self._runners.discard(runner)

    def _environment(self, run: TurnRun, prepared: PreparedTurn) -> RunnerEnvironment:
        async def record(entries: tuple[JournalEntry, ...]) -> None:
            await self._recorder.record(run, entries)

        async def settle(claimed: ClaimedItem) -> None:
            # The item stays in the inbox until the queue has published the approvals and the end of the turn: until
            # then its redelivery resumes the turn after a crash (ADR 0002).
            if claimed is not run.inbox_item:
                await self._inbox.settle(claimed)

        return RunnerEnvironment(
            record=record,
            store=self._messages.store,
            settle=settle,
            stop=prepared.hooks.stop_reason,
            approval_timeout=self._approvals.decision_timeout(run.request),
            commands=True,
            slot=run.slot,
        )

    def _keep_parked(self, run: TurnRun, feed: FeedWriter, translator: JournalTranslator) -> bool:
        """Cache a parked turn for the next decision. Return whether it is cached."""
        end = run.journal.last_seq
        if run.turn.phase is not Phase.PARKED or end is None:
            return False
        self._parked.put(
            run.request.turn, ParkedTurn(run.turn, run.epoch, end, feed, translator, run.published)
        )
        return True

    def take_parked(self, turn: str, end: int | None) -> ParkedTurn | None:
        """Remove a parked turn from the cache and return it, if its conversation's journal still ends at ``end``."""
        return self._parked.take(turn, end)

    def cancel_all(self, by: str) -> None:
        """Cancel every turn that runs here."""
        for runner in self._runners:
            runner.cancel(by)

    async def give_up(
        self, turn: Turn, missing: tuple[JournalEntry, ...], epoch: int, journal: Journal
    ) -> None:
        """End a turn that cannot be run, with the code ``internal``. Its messages so far are stored.

        ``missing`` are entries that the journal does not have yet. The caller publishes the turn's approvals and its
        end. Raises Fenced and BusError.
        """
        request = turn.request
        assert request is not None
        # The messages are stored before the end is recorded: memory has the messages of every turn that has ended in
        # the journal (ADR 0040), except those that memory refuses permanently. After a crash in between, the same
        # messages are stored again; their ids make the repeat harmless.
        try:
            await self._messages.store(append_request(turn), _no_notice)
        except RemoteFault as fault:
            log.error("turn %s, which was given up, could not be stored: %s", request.turn, fault)
        end = TurnFinished(reason="error", usage=turn.usage, code=ErrorCode.INTERNAL)
        await self._recorder.write(journal, request, epoch, (*missing, end))
        turn.apply(end)
        feed = self._open_feed(request, epoch)
        await feed.emit_journaled(*JournalTranslator().translate(end))
        self._feeds.close(feed)

    def _open_feed(self, request: TurnRequested, epoch: int) -> FeedWriter:
        return self._feeds.open(request, epoch)


async def _no_notice() -> None:
    """Give no notice: readers of a turn that is given up only learn of its end."""


def _deciding_failure(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the failure to raise for the group: Fenced takes precedence over all others."""
    flat: list[BaseException] = []
    for failure in failures.exceptions:
        flat.append(_deciding_failure(failure) if isinstance(failure, BaseExceptionGroup) else failure)
    return next((failure for failure in flat if isinstance(failure, Fenced)), flat[0])
