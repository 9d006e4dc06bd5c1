"""The monitor worker: assembles its components and follows the life cycle of a worker."""

from collections.abc import Callable
from typing import ClassVar

import anyio
from msgspec.structs import replace

from trunkline.config.settings import MonitorSettings
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import TURN_CONTEXT
from trunkline.contracts.workers.messages import WorkerHeartbeat, WorkerKind
from trunkline.home.kill_switch import KillSwitch
from trunkline.home.listeners import Listener, registered_listener
from trunkline.home.secret_file import load_secret
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.context_window import ContextWindows
from trunkline.runtime.http.auth import HttpAuth
from trunkline.runtime.panic_handler import PanicHandler
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.telemetry.orphan_spans import OrphanSpanExporter
from trunkline.telemetry.otlp_settings import is_exported
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher
from trunkline.workers.monitor.block_status import BlockStatusPublisher
from trunkline.workers.monitor.claimed_item import ClaimedItem
from trunkline.workers.monitor.compaction_consumer import CompactionConsumer
from trunkline.workers.monitor.compaction_service import CompactionService
from trunkline.workers.monitor.context_builder import ContextBuilder
from trunkline.workers.monitor.context_view_handler import ContextViewHandler
from trunkline.workers.monitor.conversation_queue import ConversationQueue
from trunkline.workers.monitor.engine_server import EngineServer
from trunkline.workers.monitor.feed_writer import FeedRegistry
from trunkline.workers.monitor.inbox import Inbox
from trunkline.workers.monitor.journal import Journal
from trunkline.workers.monitor.membership import Membership
from trunkline.workers.monitor.message_writer import MessageWriter
from trunkline.workers.monitor.monitor_models import MonitorModels
from trunkline.workers.monitor.queue_registry import QueueRegistry
from trunkline.workers.monitor.runner import RunnerDeps
from trunkline.workers.monitor.slots import SlotRules, TurnSlots
from trunkline.workers.monitor.tool_caller import ToolCaller
from trunkline.workers.monitor.turn_executor import TurnExecutor
from trunkline.workers.monitor.turn_observer import TurnObserver
from trunkline.workers.monitor.turn_preparer import TurnPreparer
from trunkline.workers.monitor.turn_recorder import TurnRecorder
from trunkline.workers.monitor.turn_router_caller import TurnRouterCaller


class MonitorWorker(Worker):
    """Runs the turns of the partitions that the server pins to it, and serves the bare agent loop on
    loopback."""

    kind: ClassVar[WorkerKind] = "monitor"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._settings = context.config.settings.monitor
        self.drain_seconds = self._settings.drain_timeout + 1.0
        self._kill_switch = KillSwitch(context.home.path)
        routers = [owned.item for owned in context.plugins.turn_routers()]
        self._builder = ContextBuilder(
            context.bus,
            [owned.item for owned in context.plugins.context_sources()],
            self._settings,
            ContextWindows(context.config.settings),
            routers,
        )
        self._context_views = ContextViewHandler(context.bus, self._builder)
        self._models = MonitorModels(context, self._kill_switch, self._builder)
        compactor = context.plugins.compactor()
        self._compaction = (
            CompactionService(context.bus, compactor, self._builder, self._models.registry)
            if compactor is not None
            else None
        )
        self._status = BlockStatusPublisher(context.bus, context.id)
        self._messages = MessageWriter(context.bus)
        self._approvals = ApprovalPublisher(context.bus, context.config.settings.approvals)
        self._recorder = TurnRecorder(context.bus, context.id, self._approvals)
        self._slots = TurnSlots(_slot_rules(self._settings))
        self._membership = Membership(context.bus, context.id)
        self._inbox = Inbox(
            context.bus,
            self._membership,
            offer=self._offer,
            leave=lambda partition: self._queues.release_partition(partition),
            announce=lambda: self.announce(),
        )
        self._access = BlockAccess(context.bus)
        self._engine = EngineServer(
            self._settings,
            context.config.settings.gateway.default_block,
            self._models.registry,
            self._models.call_config,
            self._builder,
            context.bus,
            lambda: _http_auth(context),
            self._access,
        )

    def with_status(self, heartbeat: WorkerHeartbeat) -> WorkerHeartbeat:
        """Add the pins, the conversations that are finishing, the number of unstored answers and the load of the lanes
        to the heartbeat."""
        return replace(
            heartbeat,
            pins=self._inbox.pins,
            finishing=self._queues.finishing_conversations,
            unstored=self._messages.late_count,
            lanes=self._slots.load(),
        )

    @property
    def engine_url(self) -> str:
        """The HTTP address of the bare agent loop; "" unless ``monitor.engine`` is set."""
        return self._engine.url

    async def open(self) -> None:
        """Prepare for running turns; items are taken from the inbox once ``serve()`` runs."""
        await self._builder.open()
        self.resources.callback(self._builder.close)
        tasks = await self.resources.enter_async_context(anyio.create_task_group())
        self.resources.callback(tasks.cancel_scope.cancel)
        self.resources.push_async_callback(self._models.registry.aclose)
        tasks.start_soon(self._models.run)
        if self._compaction is not None:
            tasks.start_soon(CompactionConsumer(self.context.bus, self._compaction).run)
        self._executor = self._make_executor(tasks)
        self._queues = QueueRegistry(tasks, self._new_queue, self._settings.drain_timeout)
        await self._inbox.open()
        self._engine.open()
        self.resources.callback(self._engine.close)
        if self._engine.url:
            await self._access.open()
            self.resources.callback(self._access.close)
            self.resources.enter_context(registered_listener(self.context.home.run, self._listener()))
        panic_handler = PanicHandler(self._kill_switch, self._stop_everything)
        tasks.start_soon(panic_handler.watch)
        await panic_handler.listen(self.context.bus, self.context.id, self.kind)
        await self.context.service.add(TURN_CONTEXT, self._context_views.get_context)
        await self._models.add_endpoints(self.context.service)

    async def serve(self) -> None:
        """Take items and run their turns."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._status.run)
            tasks.start_soon(self._engine.run)
            tasks.start_soon(self._inbox.run)
            tasks.start_soon(self._queues.drop_stale_items)

    async def drain(self) -> None:
        """Give up the partitions, and finish the turns and completions that run."""
        self._inbox.close()
        with anyio.move_on_after(self._settings.drain_timeout):
            await self._queues.drain()
            await self._models.drain()
        self._models.stop()

    async def _stop_everything(self) -> None:
        """On panic, cancel every running turn and every other call of a model."""
        self._executor.cancel_all("panic")
        self._models.stop()

    def _listener(self) -> Listener:
        credential = f"the token in {self.context.home.token_file}"
        return Listener(
            address=self._engine.url, purpose="the bare agent loop (monitor.engine)", credential=credential
        )

    async def _offer(self, claimed: ClaimedItem) -> None:
        await self._queues.offer(claimed)

    def _make_executor(self, tasks: anyio.abc.TaskGroup) -> TurnExecutor:
        bus, plugins = self.context.bus, self.context.plugins
        feeds = FeedRegistry(bus, tasks)
        self.resources.callback(feeds.undo)
        parallel_calls = self._settings.parallel_tool_calls
        return TurnExecutor(
            preparer=TurnPreparer(
                bus,
                self._builder,
                self._models.registry,
                plugins,
                parallel_calls,
                TurnRouterCaller(bus, plugins),
            ),
            deps=RunnerDeps(
                models=self._models.registry,
                tool_caller=ToolCaller(bus, self._settings.tool_idle_timeout),
                call_config=self._models.call_config,
                text_flush_seconds=self._settings.text_flush_seconds,
                max_calls=self._settings.max_tool_calls,
                compaction=self._compaction,
            ),
            observer=TurnObserver(self._status, self._trace_callback(tasks)),
            recorder=self._recorder,
            approvals=self._approvals,
            messages=self._messages,
            feeds=feeds,
            inbox=self._inbox,
        )

    def _new_queue(self, conversation: str) -> ConversationQueue:
        return ConversationQueue(
            Journal(self.context.bus, self.context.id, conversation),
            executor=self._executor,
            recorder=self._recorder,
            approvals=self._approvals,
            slots=self._slots,
            membership=self._membership,
            inbox=self._inbox,
        )

    def _trace_callback(self, tasks: anyio.abc.TaskGroup) -> Callable[[TurnRequested], None]:
        """Return the function that is called at the end of a turn: it exports spans that crashed workers left
        open."""
        if not self.context.config.settings.telemetry.traces or not is_exported("traces"):
            return lambda request: None
        orphan_spans = OrphanSpanExporter(self.context.bus, tasks)

        def check_trace(request: TurnRequested) -> None:
            if request.traceparent:
                orphan_spans.check_later(request.traceparent.split("-")[1])

        return check_trace


def _slot_rules(settings: MonitorSettings) -> SlotRules:
    return SlotRules(
        slots=settings.concurrency,
        background=min(settings.background_concurrency, max(1, settings.concurrency - 1)),
        longest_wait=settings.background_wait,
    )


def _http_auth(context: WorkerContext) -> HttpAuth:
    """Return the authentication with the same credentials as at the gateway."""
    home = context.home
    tokens = TokenRegistry(context.bus, TokenKey(home.token_key))
    return HttpAuth(load_secret(home.token_file), context.plugins.authenticators(), tokens)
