"""The monitor worker: puts the parts together, and lives the life of a worker."""

from typing import ClassVar

import anyio
from msgspec.structs import replace

from trunkline.latch import Latch
from trunkline.messages.workers import WorkerBeat, WorkerKind
from trunkline.monitor.acting import Unasking
from trunkline.monitor.approvals import Approvals
from trunkline.monitor.briefing import Briefer
from trunkline.monitor.completing import Completions, Limits
from trunkline.monitor.desk import TurnDesk
from trunkline.monitor.engine import EngineServer
from trunkline.monitor.feed import FeedDesk
from trunkline.monitor.held import Held
from trunkline.monitor.inbox import Inbox
from trunkline.monitor.models import Models
from trunkline.monitor.prices import Prices
from trunkline.monitor.provider import default_adapter
from trunkline.monitor.pulse import PulseBoard
from trunkline.monitor.roster import Roster
from trunkline.runtime.panicking import Heed
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.subjects import COMPLETE


class MonitorWorker(Worker):
    """Runs the turns of the partitions that the server pins to it, and serves the bare agent loop on loopback."""

    kind: ClassVar[WorkerKind] = "monitor"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._settings = context.config.settings.monitor
        self.drain_seconds = self._settings.drain + 1.0
        adapters = [owned.item for owned in context.plugins.models()]
        middleware = [owned.item for owned in context.plugins.model_middleware()]
        self._latch = Latch(context.home.path)
        self._models = Models(adapters, default_adapter(context.config, adapters), middleware, self._latch)
        self._briefer = Briefer(
            context.bus,
            [owned.item for owned in context.plugins.context_sources()],
            self._settings,
            context.config.settings.models.windows,
        )
        self._completions = Completions(
            self._models,
            Prices(context.config.settings.models.prices),
            self._briefer.standing,
            context.config.settings.gateway.default_block,
            Limits(silence=self._settings.model_silence, max_answer=self._settings.max_answer),
        )
        self._pulse = PulseBoard(context.bus, context.id)
        self._roster = Roster(context.bus, context.id)
        self._inbox = Inbox(
            context.bus,
            self._roster,
            offer=self._offer,
            leave=lambda partition: self._desk.leave(partition),
            announce=lambda: self.announce(),
        )
        self._engine = EngineServer(
            self._settings, self._models, self._briefer, Unasking(context.bus, self._settings.tool_silence)
        )

    def standing(self, beat: WorkerBeat) -> WorkerBeat:
        """Which partitions it has, and which turns it ends for others."""
        return replace(beat, pins=self._inbox.pins, finishing=self._desk.finishing)

    @property
    def engine_url(self) -> str:
        """The HTTP address of the bare agent loop; its port differs from the wished one when that was taken."""
        return self._engine.url

    async def open(self) -> None:
        """Get ready to run turns; items are taken from the inbox once ``serve()`` runs."""
        await self._briefer.open()
        self.resources.callback(self._briefer.close)
        tasks = await self.resources.enter_async_context(anyio.create_task_group())
        self.resources.callback(tasks.cancel_scope.cancel)
        self.resources.push_async_callback(self._models.aclose)
        self._feeds = FeedDesk(self.context.bus, tasks)
        self.resources.callback(self._feeds.undo)
        self._desk = self._make_desk(tasks)
        await self._inbox.open()
        await self._engine.open()
        heed = Heed(self._latch, self._stop_everything)
        tasks.start_soon(heed.watch)
        await heed.listen(self.context.bus, self.context.id, self.kind)
        await self.context.service.add(COMPLETE, self._completions.complete, limit=self._settings.concurrency)

    async def serve(self) -> None:
        """Take items and run their turns."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._pulse.run)
            tasks.start_soon(self._engine.run)
            tasks.start_soon(self._inbox.run)

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

    async def _offer(self, held: Held) -> None:
        await self._desk.offer(held)

    def _make_desk(self, tasks: anyio.abc.TaskGroup) -> TurnDesk:
        return TurnDesk(
            bus=self.context.bus,
            worker=self.context.id,
            tasks=tasks,
            plugins=self.context.plugins,
            models=self._models,
            briefer=self._briefer,
            feeds=self._feeds,
            pulse=self._pulse,
            roster=self._roster,
            limit=self._settings.concurrency,
            tool_silence=self._settings.tool_silence,
            model_silence=self._settings.model_silence,
            window=self._settings.coalesce,
            patience=self._settings.drain,
            approvals=Approvals(self.context.bus, self.context.config.settings.approvals),
            max_answer=self._settings.max_answer,
            release=self._inbox.release,
        )
