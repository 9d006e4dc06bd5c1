"""The monitor worker: puts the parts together, and lives the life of a worker."""

from collections.abc import Callable
from typing import ClassVar

import anyio
from msgspec.structs import replace

from trunkline.contracts.models.subjects import ANSWERER, COMPLETE
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.workers.messages import WorkerHeartbeat, WorkerKind
from trunkline.home.kill_switch import KillSwitch
from trunkline.home.listeners import Listener, registered_listener
from trunkline.runtime.adapter_selection import adapter_model, default_adapter
from trunkline.runtime.http.auth import HttpAuth, load_token
from trunkline.runtime.panic_handler import PanicHandler
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.telemetry.orphan_spans import OrphanSpanExporter
from trunkline.telemetry.otlp_settings import is_exported
from trunkline.workers.monitor.answerer_handler import AnswererHandler
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher
from trunkline.workers.monitor.block_status import BlockStatusPublisher
from trunkline.workers.monitor.completion_handler import CompletionHandler
from trunkline.workers.monitor.content_capture import ContentCapture
from trunkline.workers.monitor.context_builder import ContextBuilder
from trunkline.workers.monitor.engine_server import EngineServer
from trunkline.workers.monitor.feed_writer import FeedRegistry
from trunkline.workers.monitor.inbox import Inbox
from trunkline.workers.monitor.inbox_item import HeldItem
from trunkline.workers.monitor.membership import Membership
from trunkline.workers.monitor.model_call import ModelCallConfig
from trunkline.workers.monitor.model_errors import ModelErrorFormatter
from trunkline.workers.monitor.model_registry import ModelRegistry
from trunkline.workers.monitor.prices import PriceTable
from trunkline.workers.monitor.turn_service import TurnService


class MonitorWorker(Worker):
    """Runs the turns of the partitions that the server pins to it, and serves the bare agent loop on loopback."""

    kind: ClassVar[WorkerKind] = "monitor"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._settings = context.config.settings.monitor
        self.drain_seconds = self._settings.drain + 1.0
        adapters = [owned.item for owned in context.plugins.models()]
        middleware = [owned.item for owned in context.plugins.model_middleware()]
        self._latch = KillSwitch(context.home.path)
        capture = ContentCapture() if context.config.settings.telemetry.capture_content else None
        default = default_adapter(context.config, context.plugins)
        named = {adapter.name: adapter_model(context.config, adapter.name) for adapter in adapters}
        self._models = ModelRegistry(adapters, default, named, middleware, self._latch, capture)
        self._terms = ModelCallConfig(
            silence=self._settings.model_silence,
            max_answer=self._settings.max_answer,
            prices=PriceTable(context.config.settings.models.prices),
            explainer=ModelErrorFormatter(context.config.redactor()),
        )
        self._briefer = ContextBuilder(
            context.bus,
            [owned.item for owned in context.plugins.context_sources()],
            self._settings,
            context.config.settings.models.windows,
        )
        self._completions = CompletionHandler(
            self._models,
            self._briefer.standing,
            context.config.settings.gateway.default_block,
            self._terms,
        )
        self._answerers = AnswererHandler(
            context.config, self._models, self._briefer.standing, self._terms.explainer
        )
        self._pulse = BlockStatusPublisher(context.bus, context.id)
        self._roster = Membership(context.bus, context.id)
        self._inbox = Inbox(
            context.bus,
            self._roster,
            offer=self._offer,
            leave=lambda partition: self._desk.release_partition(partition),
            announce=lambda: self.announce(),
        )
        self._engine = EngineServer(
            self._settings,
            context.config.settings.gateway.default_block,
            self._models,
            self._terms,
            self._briefer,
            context.bus,
            lambda: _http_auth(context),
        )

    def with_status(self, beat: WorkerHeartbeat) -> WorkerHeartbeat:
        """Which partitions it has, which turns it ends for others, and how many it could not have stored so far."""
        desk = self._desk
        return replace(
            beat, pins=self._inbox.pins, finishing=desk.finishing_conversations, unstored=desk.unstored_count
        )

    @property
    def engine_url(self) -> str:
        """The HTTP address of the bare agent loop; "" where ``monitor.engine`` does not ask for it."""
        return self._engine.url

    async def open(self) -> None:
        """Get ready to run turns; items are taken from the inbox once ``serve()`` runs."""
        await self._briefer.open()
        self.resources.callback(self._briefer.close)
        tasks = await self.resources.enter_async_context(anyio.create_task_group())
        self.resources.callback(tasks.cancel_scope.cancel)
        self.resources.push_async_callback(self._models.aclose)
        self._feeds = FeedRegistry(self.context.bus, tasks)
        self.resources.callback(self._feeds.undo)
        self._desk = self._make_turn_service(tasks)
        await self._inbox.open()
        self._engine.open()
        self.resources.callback(self._engine.close)
        if self._engine.url:
            self.resources.enter_context(registered_listener(self.context.home.run, self._listener()))
        heed = PanicHandler(self._latch, self._stop_everything)
        tasks.start_soon(heed.watch)
        await heed.listen(self.context.bus, self.context.id, self.kind)
        await self.context.service.add(ANSWERER, self._answerers.get_answerer)
        await self.context.service.add(COMPLETE, self._completions.complete, limit=self._settings.concurrency)

    async def serve(self) -> None:
        """Take items and run their turns."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._pulse.run)
            tasks.start_soon(self._engine.run)
            tasks.start_soon(self._inbox.run)
            tasks.start_soon(self._desk.drop_stale_items)

    async def drain(self) -> None:
        """Let another monitor have the partitions, and finish the turns and completions that run."""
        self._inbox.close()
        with anyio.move_on_after(self._settings.drain):
            await self._desk.drain()
            await self._completions.drain()
        self._completions.stop()

    async def _stop_everything(self) -> None:
        """What panic ends: every turn that runs, and every question outside of turns."""
        self._desk.cancel_all("panic")
        self._completions.stop()

    def _listener(self) -> Listener:
        credential = f"the token in {self.context.home.token_file}"
        return Listener(
            address=self._engine.url, purpose="the bare agent loop (monitor.engine)", credential=credential
        )

    async def _offer(self, held: HeldItem) -> None:
        await self._desk.offer(held)

    def _make_turn_service(self, tasks: anyio.abc.TaskGroup) -> TurnService:
        return TurnService(
            bus=self.context.bus,
            worker=self.context.id,
            tasks=tasks,
            plugins=self.context.plugins,
            models=self._models,
            terms=self._terms,
            briefer=self._briefer,
            feeds=self._feeds,
            pulse=self._pulse,
            roster=self._roster,
            limit=self._settings.concurrency,
            tool_silence=self._settings.tool_silence,
            window=self._settings.coalesce,
            patience=self._settings.drain,
            approvals=ApprovalPublisher(self.context.bus, self.context.config.settings.approvals),
            max_calls=self._settings.max_tool_calls,
            parallel_calls=self._settings.parallel_tool_calls,
            release=self._inbox.release,
            ran=self._trace_callback(tasks),
        )

    def _trace_callback(self, tasks: anyio.abc.TaskGroup) -> Callable[[TurnRequested], None]:
        """What is done about the trace of a turn that ran here: a collector is told of what dead workers left open."""
        if not self.context.config.settings.telemetry.traces or not is_exported("traces"):
            return lambda request: None
        left_open = OrphanSpanExporter(self.context.bus, tasks)

        def look(request: TurnRequested) -> None:
            if request.traceparent:
                left_open.check_later(request.traceparent.split("-")[1])

        return look


def _http_auth(context: WorkerContext) -> HttpAuth:
    """The same credentials as at the gateway."""
    return HttpAuth(load_token(context.home.token_file), context.plugins.authenticators())
