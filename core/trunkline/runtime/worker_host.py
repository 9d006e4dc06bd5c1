"""Runs one worker: connection, plugins, service, heartbeat, then open, serve, drain and close."""

import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import msgspec
from anyio.abc import TaskStatus

import trunkline
from trunkline.config import Config
from trunkline.config.home_format import NewerFormatError
from trunkline.contracts.plugins.extensions import LifespanContext
from trunkline.contracts.streams import JOURNAL_STREAM
from trunkline.contracts.topology import topology
from trunkline.contracts.workers.messages import WorkerHeartbeat, WorkerKind
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.errors import TrunklineError
from trunkline.home.bus_migration import migrate_bus, with_format
from trunkline.home.paths import Home
from trunkline.plugins import Plugins
from trunkline.runtime.connection_settings import with_own_inbox
from trunkline.runtime.partitions import with_current_partitions
from trunkline.runtime.startup_retry import retry_until_available
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.telemetry.otlp_settings import is_exported
from trunkline_bus import Bus, BusError, BusSettings, Topology, apply, connect, new_id, service
from trunkline_bus.task_group import background_tasks, without_group

log = logging.getLogger(__name__)

WorkerLoader = Callable[[WorkerKind], type[Worker]]
"""Returns the class of a kind. ``trunkline.workers.load_worker`` is passed in, because this package imports no
worker."""

HEARTBEAT_SECONDS = 1.0
CLOSE_SECONDS = 10.0
SILENCE_SECONDS = 2.0
"""Seconds that running requests may take after their worker crashed or did not drain in time."""


@dataclass(frozen=True, slots=True)
class WorkerHostSettings:
    """The settings of a worker's host.

    ``bus`` has the address of the server. ``extra`` are plugin objects besides the installed ones.
    ``prepare_bus`` is false when the supervisor applies streams and buckets to the server. ``restarts`` is
    the number of earlier crashes of a worker of this kind here.
    """

    config: Config
    bus: BusSettings
    extra: tuple[object, ...] = field(default=())
    prepare_bus: bool = True
    restarts: int = 0


async def run_worker(
    worker_type: type[Worker],
    settings: WorkerHostSettings,
    stop: anyio.Event,
    *,
    task_status: TaskStatus[Worker] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run one worker until ``stop`` is set (drain, then close), it has finished, or it crashes.

    ``task_status.started`` receives the open worker.

    Raises:
      TrunklineError, BusError: the worker could not open.
      Exception: the error of the worker's ``serve()``; the worker has been closed.
    """
    # A lifespan of a plugin may have a task group, which wraps the error of the worker that it surrounds.
    with without_group():
        await _run_in_context(worker_type, settings, stop, task_status)


async def _run_in_context(
    worker_type: type[Worker],
    settings: WorkerHostSettings,
    stop: anyio.Event,
    task_status: TaskStatus[Worker],
) -> None:
    async with _context(worker_type.kind, settings, stop) as context:
        worker = worker_type(context)
        async with _closing(worker):
            async with context.service.confirm_together():
                await worker.open()
            log.debug("worker %s is open", context.kind, extra={"worker": context.id})
            async with background_tasks() as tasks:
                heartbeat = _Heartbeat(context, worker, settings.restarts)
                worker.announce = heartbeat.send
                tasks.start_soon(heartbeat.run)
                task_status.started(worker)
                await _serve(worker, heartbeat, stop)
            await heartbeat.remove()


@asynccontextmanager
async def _context(
    kind: WorkerKind, settings: WorkerHostSettings, stop: anyio.Event
) -> AsyncIterator[WorkerContext]:
    """Create the context of a worker, and release it in reverse order."""
    config, worker_id = settings.config, new_id(kind)
    plugins = Plugins.load(config, worker=kind, extra=settings.extra)
    bus_settings = msgspec.structs.replace(with_own_inbox(settings.bus, kind), name=worker_id)
    async with AsyncExitStack() as stack:
        stack.callback(plugins.activity_log.close)

        async def connected() -> Bus:
            return await stack.enter_async_context(connect(bus_settings, middleware=plugins.bus_middleware()))

        timeout = config.settings.bus.connect_timeout
        bus = await retry_until_available(connected, timeout, stop)
        if settings.prepare_bus:
            if config.settings.bus.manage_streams:
                stack.callback(
                    await retry_until_available(
                        lambda: maintain_configured_topology(bus, config), timeout, stop
                    )
                )
            await enter_telemetry(stack, bus, config, f"trunkline-{kind}", worker_id)
        await _enter_lifespans(stack, plugins, kind, bus)
        answering = await stack.enter_async_context(
            service(bus, name=f"trunkline-{kind}", version=trunkline.__version__)
        )
        yield WorkerContext(
            id=worker_id, kind=kind, config=config, plugins=plugins, bus=bus, service=answering,
            home=Home.of(config), started_at=datetime.now(UTC),
        )  # fmt: skip


async def maintain_configured_topology(
    bus: Bus, config: Config, *, remake: Collection[str] = ()
) -> Callable[[], None]:
    """Apply streams, consumers and buckets to the server, now and after each reconnect.

    A restarted server has lost those that it kept in memory. Return a function that ends the repetition after
    reconnects.

    ``remake`` names the streams that may be recreated now without their content, if the server cannot change them.
    Raises BusError, and NewerFormatError when a newer version wrote the streams.
    """
    return await maintain_topology(bus, configured_topology(config), remake=remake)


def configured_topology(config: Config) -> Topology:
    """Return the topology that the configuration requires."""
    bus_config = config.settings.bus
    return with_format(
        topology(
            replicas=bus_config.replicas, retention=config.settings.retention, feed=bus_config.feed_storage
        )
    )


async def maintain_topology(
    bus: Bus, topology: Topology, *, remake: Collection[str] = ()
) -> Callable[[], None]:
    """Do the same as ``maintain_configured_topology`` for any topology."""

    async def bring(remake: Collection[str] = ()) -> None:
        if any(stream.name == JOURNAL_STREAM for stream in topology.streams):
            await migrate_bus(bus)
        await apply(bus, await with_current_partitions(bus, topology), remake=remake)

    async def again() -> None:
        try:
            await bring()
        except (BusError, NewerFormatError) as error:
            log.warning("streams could not be applied to the server after a reconnect: %s", error)

    await bring(remake)
    return bus.on_reconnect(again)


async def enter_telemetry(
    stack: AsyncExitStack, bus: Bus, config: Config, service: str, instance: str
) -> None:
    """Trace this process while the stack is open, unless ``[telemetry] traces`` is off, and export its
    metrics when OpenTelemetry's variables name a collector."""
    if is_exported("traces") or is_exported("metrics"):
        from trunkline.telemetry.setup import flush_on_exit

        await stack.enter_async_context(flush_on_exit())
    if config.settings.telemetry.traces:
        from trunkline.telemetry.setup import export_spans_to_bus

        await stack.enter_async_context(export_spans_to_bus(bus, service, instance))
    if is_exported("metrics"):
        from trunkline.telemetry.setup import export_metrics

        await stack.enter_async_context(export_metrics(service, instance))


async def _enter_lifespans(stack: AsyncExitStack, plugins: Plugins, kind: WorkerKind, bus: Bus) -> None:
    for owned in plugins.lifespans(kind):
        try:
            await stack.enter_async_context(owned.item(LifespanContext(kind, bus, owned.owner)))
            stack.enter_context(plugins.record_activity(owned.owner, "lifespan"))
        except Exception:
            log.exception("the lifespan of plugin %s failed; the worker continues without it", owned.owner)


async def _serve(worker: Worker, heartbeat: "_Heartbeat", stop: anyio.Event) -> None:
    async with background_tasks() as tasks:

        async def leave() -> None:
            await stop.wait()
            heartbeat.draining = True
            worker.context.plugins.activity_log.mark_leaving()
            # Sent at once: a worker that takes over returned items must know that this worker finishes the others.
            await heartbeat.send()
            await _drain(worker)
            tasks.cancel_scope.cancel()

        tasks.start_soon(leave)
        await worker.serve()


async def _drain(worker: Worker) -> None:
    service = worker.context.service
    with anyio.move_on_after(worker.drain_seconds) as deadline:
        try:
            await service.stop()
            await worker.drain()
            await service.close()
        except (TrunklineError, BusError) as error:
            log.warning("worker %s could not drain: %s", worker.kind, error)
    if deadline.cancelled_caught:
        log.warning("worker %s did not drain in %g s and is closed", worker.kind, worker.drain_seconds)


@asynccontextmanager
async def _closing(worker: Worker) -> AsyncIterator[None]:
    """Close the worker at the end, also when cancelled. One scope covers the worker's whole life, because contexts that
    ``open()`` entered must be left within the same scope."""
    with anyio.CancelScope() as life:
        try:
            yield
        finally:
            life.shield, life.deadline = True, anyio.current_time() + CLOSE_SECONDS
            await _close_service(worker)
            await worker.close()
    if life.cancelled_caught:
        log.warning("worker %s did not close in %g s", worker.kind, CLOSE_SECONDS)


async def _close_service(worker: Worker) -> None:
    """Close the service first, because a request that reaches a closed worker would get a permanent failure."""
    with anyio.move_on_after(SILENCE_SECONDS):
        await worker.context.service.close()


class _Heartbeat:
    """Writes the worker's heartbeat to the worker bucket each second. A failed write is only logged."""

    def __init__(self, context: WorkerContext, worker: Worker, restarts: int) -> None:
        self._worker = worker
        self._bucket = context.bus.kv(WORKER_BUCKET)
        self.draining = False
        self._beat = WorkerHeartbeat(
            id=context.id, kind=context.kind, pid=os.getpid(), host=socket.gethostname(),
            version=trunkline.__version__, started_at=context.started_at, restarts=restarts,
        )  # fmt: skip

    async def run(self) -> None:
        while True:
            await self.send()
            await anyio.sleep(HEARTBEAT_SECONDS)

    async def send(self) -> None:
        heartbeat = self._worker.with_status(msgspec.structs.replace(self._beat, draining=self.draining))
        with anyio.move_on_after(HEARTBEAT_SECONDS):
            try:
                await self._bucket.put(heartbeat.id, heartbeat)
            except BusError as error:
                log.debug("beat of %s failed: %s", heartbeat.id, error)

    async def remove(self) -> None:
        with anyio.move_on_after(1.0):
            try:
                await self._bucket.delete(self._beat.id)
            except BusError as error:
                log.debug("beat of %s could not be removed: %s", self._beat.id, error)


async def provision_streams(
    settings: WorkerHostSettings,
    stop: anyio.Event,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Apply streams, consumers and buckets to the server, now and after each reconnect, until ``stop`` is
    set.

    ``task_status.started`` is called when they exist.

    Raises:
      BusError: the streams, consumers or buckets could not be created.
    """
    named = msgspec.structs.replace(settings.bus, name="streams")
    timeout = settings.config.settings.bus.connect_timeout
    async with AsyncExitStack() as stack:
        bus = await retry_until_available(lambda: stack.enter_async_context(connect(named)), timeout, stop)
        forget = await retry_until_available(
            lambda: maintain_configured_topology(bus, settings.config), timeout, stop
        )
        task_status.started()
        await stop.wait()
        forget()
