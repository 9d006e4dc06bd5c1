"""The gateway worker: starts the services on the bus, then the HTTP server. The services do the work."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import anyio
from opentelemetry.metrics import get_meter

from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import StorageError, TrunklineError
from trunkline.home.kill_switch import KillSwitch
from trunkline.home.listeners import Listener, registered_listener
from trunkline.home.secret_file import load_secret
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.http.auth import HttpAuth
from trunkline.runtime.http.gateway_certificate import gateway_certificate
from trunkline.runtime.locale_checks import CheckedLocale, check_locales
from trunkline.runtime.worker import Worker
from trunkline.telemetry.instruments import Instruments
from trunkline.telemetry.otlp_settings import is_exported
from trunkline.workers.gateway.auth.handlers import register_auth_handlers
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.bus_handlers import register_handlers
from trunkline.workers.gateway.platform_metrics import export_platform_metrics
from trunkline.workers.gateway.services import Services
from trunkline_bus import BusError, Refusal, background_tasks

if TYPE_CHECKING:
    from trunkline.workers.gateway.http.app_state import AppState

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
FIRST_SECONDS = 1.0
"""Seconds that the start waits for memory, so that the default block exists when the gateway first
answers."""


CERTIFICATE_SECONDS = 10.0
"""Seconds between two looks at the certificate."""


class GatewayWorker(Worker):
    """Accepts messages, manages conversations and blocks, and serves HTTP at ``address`` and ``sockets`` there."""

    kind: ClassVar[WorkerKind] = "gateway"

    async def open(self) -> None:
        cache = BlockCache(self.context.bus)
        await cache.open()
        self.resources.callback(cache.close)
        access = BlockAccess(self.context.bus)
        await access.open()
        self.resources.callback(access.close)
        key = TokenKey(self.context.home.token_key)
        load_secret(key.file)
        registry = TokenRegistry(self.context.bus, key)
        self._services = Services.from_context(self.context, cache, access, key, registry)
        state = self._bind_http()
        self.resources.enter_context(registered_listener(self.context.home.run, self._listener(state)))
        with anyio.move_on_after(FIRST_SECONDS):
            await self._ensure_default_block()
        async with self.context.service.confirm_together():
            await register_handlers(self._services, self.context.service)
            await register_auth_handlers(self._services.auth, self.context.service)
        await self._services.auth.watch()
        await self.resources.enter_async_context(self.sockets.opened())
        tasks = await self.resources.enter_async_context(anyio.create_task_group())
        self.resources.callback(tasks.cancel_scope.cancel)
        await tasks.start(self._server.serve)
        log.info("the gateway listens at %s", self.address)

    def _bind_http(self) -> "AppState":
        """Bind the HTTP port without serving requests yet."""
        from trunkline.runtime.http.timeouts import timeout_protocol
        from trunkline.workers.gateway.http.app import AppState, build_app
        from trunkline.workers.gateway.http.routes.metrics import JournalMetrics
        from trunkline.workers.gateway.http.server import HttpServer
        from trunkline.workers.gateway.socket.registry import SocketRegistry
        from trunkline.workers.gateway.socket.tickets import TicketStore

        context, settings = self.context, self.context.config.settings.gateway
        auth, token = self._services.auth, load_secret(context.home.token_file)
        poll_limiter, self._closing = PollLimiter(), anyio.Event()
        self.sockets = SocketRegistry(
            self._services, poll_limiter, self._closing, KillSwitch(context.home.path), settings.max_sockets
        )
        notes = auth.audit.sign_in_refused, auth.note_presented
        state = AppState(
            services=self._services,
            auth=HttpAuth(token, context.plugins.authenticators(), auth.registry, *notes),
            routes=context.plugins.http_routes(),
            host=settings.host,
            max_content=settings.max_content,
            metrics=JournalMetrics(context.bus),
            sockets=self.sockets,
            tickets=TicketStore(context.bus),
            poll_limiter=poll_limiter,
            closing=self._closing,
            metrics_for=settings.metrics,
            hosts=settings.allowed_hosts,
            site=context.plugins.static_site(),
            locales=self._locales(),
        )
        self._tls = gateway_certificate(settings)
        protocol = timeout_protocol(settings.header_timeout, settings.body_timeout)
        self._server = HttpServer(
            build_app(state),
            state.closing,
            settings.host,
            settings.port,
            protocol,
            max_message=state.max_body,
            ping_interval=settings.ping_interval,
            tls=self._tls,
        )
        self.resources.callback(self._server.release)
        self.address = self._server.address
        return state

    def _locales(self) -> Mapping[str, CheckedLocale]:
        """Return the languages of the web app, and log what is wrong with them."""
        found = check_locales(self.context.plugins.locales())
        for problem in (problem for one in found.values() for problem in one.problems):
            log.warning("%s", problem)
        return found

    async def serve(self) -> None:
        async with background_tasks() as tasks:
            if is_exported("metrics"):
                tasks.start_soon(
                    export_platform_metrics, self.context.bus, Instruments(get_meter("trunkline.gateway"))
                )
            tasks.start_soon(self._services.auth.registry.run)
            tasks.start_soon(self._services.auth.complete_revocations)
            tasks.start_soon(self._services.audit.run)
            tasks.start_soon(self._services.approvals.run_timers)
            tasks.start_soon(self._services.agents.reports.run_ends)
            tasks.start_soon(self._services.agents.reports.run_deadlines)
            tasks.start_soon(self._services.agents.notices.run)
            tasks.start_soon(self._services.notifier.run)
            tasks.start_soon(self._follow_certificate)
            tasks.start_soon(self._services.wake_ups.run)
            await self._listen()

    def _listener(self, state: "AppState") -> Listener:
        from trunkline.workers.gateway.http.app import open_paths

        site = ["/ (the web app's files)"] if state.site is not None else []
        public = ", ".join([*site, *sorted(open_paths(state))])
        credential = f"the token in {self.context.home.token_file}; none for {public}"
        return Listener(
            address=self.address, purpose="the gateway, for people and programs", credential=credential
        )

    async def _listen(self) -> None:
        await self._ensure_default_block()
        await self._server.ended.wait()
        if self._closing.is_set():  # drained
            await anyio.sleep_forever()
        raise TrunklineError("The HTTP server stopped by itself.", hint="The reason is in its log.")

    async def _follow_certificate(self) -> None:
        """Use a renewed certificate for new connections, without a restart."""
        while self._tls is not None:
            await anyio.sleep(CERTIFICATE_SECONDS)
            if self._tls.reload():
                log.info("the certificate of the gateway changed; it ends on %s", self._tls.expires.date())

    async def drain(self) -> None:
        await self._server.drain()

    async def _ensure_default_block(self) -> None:
        """Create the default block, for messages that name none, as soon as memory answers."""
        while True:
            try:
                return await self._services.blocks.ensure_default()
            except (BusError, Refusal) as error:
                log.info("the default block waits for memory: %s", error)
            except StorageError as error:
                log.warning("the default block cannot be created: %s", error)
            await anyio.sleep(RETRY_SECONDS)
