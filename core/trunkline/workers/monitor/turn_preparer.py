"""Prepares a turn for its runner: context, model, plugin hooks and the first journal entries."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.turns.feed_messages import COMPACTION_STATUS, StatusShown, TextDelta, TextReset
from trunkline.contracts.turns.journal_messages import JournalEntry, TurnResumed, TurnStarted
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import FEED
from trunkline.errors import ModelError
from trunkline.plugins import Plugins
from trunkline.workers.monitor.context_builder import ContextBuilder, TurnContext
from trunkline.workers.monitor.fork_history import with_fork_history
from trunkline.workers.monitor.mailbox import is_immediate_cancel
from trunkline.workers.monitor.model_history import covers
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline.workers.monitor.turn import Phase
from trunkline.workers.monitor.turn_hooks import TurnHooks
from trunkline.workers.monitor.turn_router_caller import TurnRouterCaller
from trunkline.workers.monitor.turn_run import TurnRun
from trunkline_bus import Bus


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn that a runner can start with. ``partial_text`` is the text of an interrupted model call that
    readers have; the run continues it, or a cancel keeps it."""

    context: TurnContext
    choice: SelectedModel | ModelError
    hooks: TurnHooks
    first_entries: tuple[JournalEntry, ...]
    partial_text: str = ""


class TurnPreparer:
    """Prepares turns. Writes nothing. Only a turn router may call a model."""

    def __init__(
        self,
        bus: Bus,
        builder: ContextBuilder,
        models: ModelRegistry,
        plugins: Plugins,
        parallel_calls: int,
        routers: TurnRouterCaller,
    ) -> None:
        self._bus = bus
        self._builder = builder
        self._models = models
        self._plugins = plugins
        self._parallel_calls = parallel_calls
        self._routers = routers

    async def prepare(self, run: TurnRun) -> PreparedTurn:
        """Prepare the run of a new, resumed or parked turn. Raises BusError when another worker does not answer."""
        request, forked_record = run.request, None
        if run.turn.phase is Phase.NEW and request.fork is not None:
            request, forked_record = await with_fork_history(self._bus, request, request.fork)
        context = await self._builder.build(request, run.messages)
        if forked_record is not None:
            context = replace(context, summary_record=forked_record)
        context = await self._routed(run, context)
        hooks = TurnHooks(self._plugins, self._builder, context)
        choice = self._choose_model(context, hooks)
        if run.turn.phase is Phase.NEW:
            return PreparedTurn(context, choice, hooks, (await self._started(request, context, choice),))
        # A turn that this monitor parked continues in its epoch. For any other turn the entry TurnResumed begins a new
        # epoch, in which the feed repeats all events (ADR 0004).
        first = (TurnResumed(),) if run.parked is None else ()
        partial_text = await self._partial_text(run) if _needs_partial_text(run, choice) else ""
        return PreparedTurn(context, choice, hooks, first, partial_text)

    async def _routed(self, run: TurnRun, context: TurnContext) -> TurnContext:
        """Return the context with the recorded decision of a turn router, or with a new one if the turn is new."""
        if run.turn.started is not None:
            return replace(context, route=run.turn.started.route or None)
        if context.profile.problem or any(is_immediate_cancel(control.item) for control in run.controls):
            return context
        return replace(context, route=await self._routers.route(self._builder.info(context)))

    def _choose_model(self, context: TurnContext, hooks: TurnHooks) -> SelectedModel | ModelError:
        try:
            preference = context.preferred_model
            if not context.is_model_named:
                preference = hooks.select_model(preference)
            return self._models.choose(preference)
        except ModelError as error:
            return error

    async def _started(
        self, request: TurnRequested, context: TurnContext, choice: SelectedModel | ModelError
    ) -> TurnStarted:
        model = choice.label if isinstance(choice, SelectedModel) else ""
        messages, statuses, parts = await self._builder.context_messages(context, model)
        record = self._summary_record(context)
        return TurnStarted(
            request=request,
            model=model,
            context=messages,
            statuses=(*_compaction_status(record, context), *statuses) or msgspec.UNSET,
            parallel=self._parallel_calls,
            derived=_derived(choice),
            summary_record=record or msgspec.UNSET,
            parts=parts,
            route=context.route or msgspec.UNSET,
        )

    def _summary_record(self, context: TurnContext) -> SummaryRecord | None:
        """Return the record that the turn uses. Without a compactor the model receives all messages."""
        record = context.summary_record
        return record if covers(record, context.history) and self._plugins.compactor() is not None else None

    async def _partial_text(self, run: TurnRun) -> str:
        """Return the text of the interrupted model call that is in the feed."""
        text = ""
        keys = {"conversation": run.request.conversation, "turn": run.request.turn}
        async for stored in self._bus.history(FEED, after=0, **keys):
            event = stored.data.event
            if isinstance(event, TextReset) and event.step == run.turn.step:
                text = ""
            elif isinstance(event, TextDelta) and event.step == run.turn.step and event.offset <= len(text):
                text = text[: event.offset] + event.text
        return text


def _compaction_status(record: SummaryRecord | None, context: TurnContext) -> Iterator[StatusShown]:
    """Yield the status that tells people of a compaction in the background, in the first turn after it."""
    if record is None or not context.history or record.created_at <= context.history[-1].created_at:
        return
    said = f"The first {record.count} messages are now summarised for the model. /compact undo withdraws the summary."
    yield StatusShown(
        name=COMPACTION_STATUS, data={"messages": record.count, "model": record.model}, text=said
    )


def _needs_partial_text(run: TurnRun, choice: SelectedModel | ModelError) -> bool:
    """Report whether the interrupted text is used: the model can continue the text, or a cancel ends the turn with the
    text."""
    if run.turn.phase not in (Phase.THINKING, Phase.PREEMPTED):
        return False
    can_continue = isinstance(choice, SelectedModel) and choice.adapter.continues
    return can_continue or any(is_immediate_cancel(control.item) for control in run.controls)


def _derived(choice: SelectedModel | ModelError) -> bool | msgspec.UnsetType:
    return True if isinstance(choice, SelectedModel) and choice.adapter.derived else msgspec.UNSET
