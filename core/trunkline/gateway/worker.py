"""The gateway worker's life: its services on the bus, then HTTP in front of them. No service's own work is in here."""

import logging
from typing import ClassVar

import anyio

from trunkline.errors import TrunklineError
from trunkline.gateway.approvals import Approvals
from trunkline.gateway.auth import Door, load_token
from trunkline.gateway.blocks import Blocks
from trunkline.gateway.conversations import Conversations
from trunkline.gateway.endpoints import BusFace
from trunkline.gateway.grants import Grants
from trunkline.gateway.known_blocks import KnownBlocks
from trunkline.gateway.running import Turns
from trunkline.gateway.service import Messages
from trunkline.gateway.workspaces import Workspaces
from trunkline.messages.workers import WorkerKind
from trunkline.runtime.audit import AuditLog
from trunkline.runtime.standing import export_standing
from trunkline.runtime.worker import Worker
from trunkline.telemetry.collector import wanted
from trunkline.telemetry.instruments import Instruments
from trunkline_bus import BusError, Refusal, background_tasks

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
FIRST_SECONDS = 1.0
"""How long the start waits for memory, so that the default block is there when the gateway first answers."""


class GatewayWorker(Worker):
    """Takes messages in, keeps conversations and blocks, serves HTTP at ``address``."""

    kind: ClassVar[WorkerKind] = "gateway"

    async def open(self) -> None:
        from trunkline.gateway.http.app import Parts, build_app
        from trunkline.gateway.http.metrics import Metrics
        from trunkline.gateway.http.server import HttpServer
        from trunkline.runtime.patience import patient

        context, settings = self.context, self.context.config.settings.gateway
        turns = Turns(context.bus)
        known = KnownBlocks(context.bus)
        await known.open()
        self.resources.callback(known.close)
        conversations = Conversations(context.bus, turns, known)
        self._blocks = Blocks(
            context.bus, turns, conversations, Workspaces(context.home), known, settings.default_block
        )
        messages = Messages(
            context.bus,
            turns,
            conversations,
            self._blocks,
            rules=context.plugins.admission_rules(),
            route=context.plugins.route,
            max_content=settings.max_content,
        )
        grants = Grants(context.bus)
        self._audit = AuditLog(context.bus, context.config.settings.audit.detail)
        self._approvals = Approvals(context.bus, turns, grants, self._audit)
        door = Door(load_token(context.home.token_file), context.plugins.authenticators())
        parts = Parts(
            bus=context.bus,
            messages=messages,
            approvals=self._approvals,
            grants=grants,
            conversations=conversations,
            blocks=self._blocks,
            door=door,
            routes=context.plugins.http_routes(),
            host=settings.host,
            max_content=settings.max_content,
            metrics=Metrics(context.bus),
            metrics_for=settings.metrics,
            hosts=settings.hosts,
        )
        self._closing = parts.closing
        patience = patient(settings.head_timeout, settings.body_timeout)
        self._server = HttpServer(build_app(parts), parts.closing, settings.host, settings.port, patience)
        self.resources.callback(self._server.release)
        self.address = self._server.address
        with anyio.move_on_after(FIRST_SECONDS):
            await self._make_default_block()
        face = BusFace(messages, self._approvals, grants, conversations, self._blocks)
        await face.answer_on(context.service)
        tasks = await self.resources.enter_async_context(anyio.create_task_group())
        self.resources.callback(tasks.cancel_scope.cancel)
        await tasks.start(self._server.serve)
        log.info("the gateway listens at %s", self.address)

    async def serve(self) -> None:
        async with background_tasks() as tasks:
            if wanted("metrics"):
                tasks.start_soon(export_standing, self.context.bus, Instruments("trunkline.gateway"))
            tasks.start_soon(self._audit.keep)
            tasks.start_soon(self._approvals.keep_time)
            await self._listen()

    async def _listen(self) -> None:
        await self._make_default_block()
        await self._server.ended.wait()
        if self._closing.is_set():  # drained
            await anyio.sleep_forever()
        raise TrunklineError("The HTTP server stopped by itself.", hint="Its log says why.")

    async def drain(self) -> None:
        await self._server.drain()

    async def _make_default_block(self) -> None:
        """The block that messages go to when nobody says which; as soon as memory answers."""
        while True:
            try:
                return await self._blocks.ensure_default()
            except (BusError, Refusal) as error:
                log.info("the default block waits for memory: %s", error)
            await anyio.sleep(RETRY_SECONDS)
