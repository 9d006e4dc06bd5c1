"""The supervisor: runs all workers in one process, on an embedded or a configured server.

The supervisor starts the workers in the order of the boot phases and drains them in DRAIN_ORDER. Workers are
independent of each other: when one crashes, the supervisor restarts it while the others continue.
"""

import logging
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.abc

import trunkline
from trunkline._util.regular_file import read_regular
from trunkline._util.toml import read_toml
from trunkline.acl.roles import all_roles, remote_role
from trunkline.acl.subject_permissions import subject_permissions
from trunkline.config import Config
from trunkline.contracts.streams import FEED_STREAM
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import ConfigError, StorageError, TrunklineError
from trunkline.home.listeners import Listener, registered_listener
from trunkline.home.migration import migrate
from trunkline.home.paths import Home
from trunkline.home.restore_transaction import roll_back
from trunkline.home.run_file import (
    AlreadyRunning,
    RunFile,
    instance_lock,
    remove_run_file,
    run_file_path,
    write_run_file,
)
from trunkline.plugins.registry import isolated_plugins
from trunkline.runtime.adapter_selection import check_adapters
from trunkline.runtime.connection_settings import bus_settings, connection_hint, server_settings
from trunkline.runtime.plugin_supervisor import PluginProcess, plan_plugin_processes, supervise_plugin
from trunkline.runtime.remotes.certificates import LEAF_CERTIFICATE, LEAF_KEY, ensure_leaf_certificate
from trunkline.runtime.remotes.registry import Remote, RemoteRegistry
from trunkline.runtime.worker import Worker
from trunkline.runtime.worker_host import (
    WorkerHostSettings,
    WorkerLoader,
    enter_telemetry,
    maintain_configured_topology,
    run_worker,
)
from trunkline_bus import BusError, BusSettings, EmbeddedServer, LeafListener, LeafUser, connect, new_id
from trunkline_bus.backoff import Backoff
from trunkline_bus.task_group import background_tasks

log = logging.getLogger(__name__)

BOOT: tuple[tuple[str, tuple[WorkerKind, ...]], ...] = (
    ("adapter config", ()),
    ("tools", ("tools",)),
    ("memory and its history", ("memory",)),
    ("preferences", ()),
    ("ready", ("gateway", "monitor", "channels")),
)
"""The boot phases after the runtime configuration, and the workers that open in each."""

RECREATED_STREAMS = (FEED_STREAM,)
"""Streams that are recreated when the server cannot change them to the configured form, while no turn runs
yet: the journal has their content."""

DRAIN_ORDER: tuple[WorkerKind, ...] = ("channels", "monitor", "tools", "gateway", "memory")
"""Workers that send requests drain before those that answer them."""

POLL_SECONDS = 1.0

FIRST_PAUSE, LONGEST_PAUSE, STABLE_SECONDS = 0.2, 10.0, 60.0
"""Seconds before a crashed worker is restarted: doubled each time, and reset after a stable period."""


class BootError(TrunklineError):
    """The start-up failed. The message names the phase."""

    def __init__(self, phase: str, cause: Exception) -> None:
        sentence = str(cause) or type(cause).__name__
        hint = connection_hint(cause) if isinstance(cause, BusError) else getattr(cause, "hint", "")
        super().__init__(f"Start-up stopped at '{phase}': {sentence}", hint=hint)
        self.phase = phase
        self.cause = cause


class Instance:
    """A running platform. ``bus`` has the address of its server."""

    def __init__(self, config: Config, bus: BusSettings, home: Home) -> None:
        self.config = config
        self.bus = bus
        self.home = home
        self.server: EmbeddedServer | None = None
        self.workers: dict[WorkerKind, Worker] = {}
        self.restarts: dict[WorkerKind, int] = {}

    @property
    def gateway(self) -> str:
        """The gateway's HTTP address, or "" when no gateway runs here."""
        worker = self.workers.get("gateway")
        return worker.address if worker is not None else ""


@asynccontextmanager
async def running_platform(
    config: Config,
    load: WorkerLoader,
    *,
    kinds: tuple[WorkerKind, ...],
    extra: tuple[object, ...] = (),
) -> AsyncIterator[Instance]:
    """Run workers within the context, and drain them at its end.

    Raises:
      AlreadyRunning: another process runs on this home.
      BootError: a phase of the start-up failed; everything started before is closed again.
    """
    home = Home.of(config)
    async with AsyncExitStack() as stack:
        with _phase("runtime config"):
            home.prepare()
            stack.enter_context(instance_lock(home))
            if roll_back(home.path):
                raise StorageError(
                    f"A restore into {home.path} was interrupted, and the former files are back in place.",
                    hint="Start again; to repeat the restore, run: trunkline restore",
                )
            home.remove_leftovers()
            migrate(home)
        instance = Instance(config, bus_settings(config), home)
        isolated = _isolated_processes(config, extra, kinds)
        with _phase("bus"):
            await _enter_bus(stack, instance, isolated)
        pool = _WorkerPool(instance, load, extra)
        tasks = await stack.enter_async_context(background_tasks())
        stack.push_async_callback(pool.drain)
        if (server := instance.server) is not None:
            for child in isolated:
                tasks.start_soon(supervise_plugin, child, config, server.url)
        await _boot(pool, kinds, tasks)
        write_run_file(home, _run_file(instance))
        stack.callback(remove_run_file, home)
        yield instance


def _isolated_processes(
    config: Config, extra: tuple[object, ...], kinds: tuple[WorkerKind, ...]
) -> tuple[PluginProcess, ...]:
    """Return the plugins that run in separate processes, for the workers that run here."""
    if "tools" not in kinds and "channels" not in kinds:
        return ()
    return plan_plugin_processes(config, isolated_plugins(config, extra))


async def _enter_bus(stack: AsyncExitStack, instance: Instance, isolated: tuple[PluginProcess, ...]) -> None:
    config, home = instance.config, instance.home
    if config.settings.bus.url is None:
        registry = RemoteRegistry(home.remotes)
        listener = _leaf_listener(config, registry)
        settings = server_settings(
            config, home.bus, listener=listener, users=tuple(child.user for child in isolated)
        )
        server = await stack.enter_async_context(EmbeddedServer(settings))
        instance.server = server
        stack.enter_context(registered_listener(home.run, _bus_listener(server, home)))
        if listener is not None:
            stack.enter_context(registered_listener(home.run, _leaf_listener_record(listener)))
            watcher_tasks = await stack.enter_async_context(background_tasks())
            watcher_tasks.start_soon(_watch_remotes, server, registry)
        instance.bus = bus_settings(config, url=server.url, user=server.user, password=server.password)
    bus = await stack.enter_async_context(connect(instance.bus))
    if instance.server is not None or config.settings.bus.manage_streams:
        is_exclusive = instance.server is not None  # the server has just started, with its own credentials
        stack.callback(
            await maintain_configured_topology(bus, config, remake=RECREATED_STREAMS if is_exclusive else ())
        )
    await enter_telemetry(stack, bus, config, "trunkline", new_id("trunkline"))


def _leaf_listener(config: Config, registry: RemoteRegistry) -> LeafListener | None:
    """Return the listener for remotes, or None when the configuration has none."""
    listen = config.settings.remotes.listen
    if listen is None:
        return None
    ensure_leaf_certificate(registry.folder)
    registry.all()  # raises for a file that is not valid
    return LeafListener(
        listen=listen, certificate=registry.folder / LEAF_CERTIFICATE, key=registry.folder / LEAF_KEY,
        users=lambda: leaf_users(_enrolled_remotes(registry)),
    )  # fmt: skip


def _bus_listener(server: EmbeddedServer, home: Home) -> Listener:
    credential = f"a password made for this instance, in {run_file_path(home)}"
    return Listener(
        address=server.url, purpose="the bus (NATS), for workers and commands", credential=credential
    )


def _leaf_listener_record(listener: LeafListener) -> Listener:
    return Listener(
        address=f"tls://{listener.listen}",
        purpose="other hosts whose tools are used here (remotes.listen)",
        credential="the key of a host that was invited",
    )


def _enrolled_remotes(registry: RemoteRegistry) -> tuple[Remote, ...]:
    try:
        return registry.all()
    except ConfigError as error:
        log.error("no remote is admitted: %s", error)
        return ()


async def _watch_remotes(server: EmbeddedServer, registry: RemoteRegistry) -> None:
    """Reload the server whenever the remotes or the certificate change."""
    stamp = last_stamp = _remotes_stamp(registry)
    while True:
        await anyio.sleep(POLL_SECONDS)
        stamp = _remotes_stamp(registry)
        if stamp != last_stamp:
            last_stamp = stamp
            log.info(
                "the remotes changed: %s",
                ", ".join(one.name for one in _enrolled_remotes(registry)) or "none is admitted",
            )
            server.reload()


def _remotes_stamp(registry: RemoteRegistry) -> tuple[object, ...]:
    status = (registry.folder / LEAF_CERTIFICATE).stat()
    return registry.stamp(), status.st_ino, status.st_mtime_ns


async def _boot(pool: "_WorkerPool", kinds: tuple[WorkerKind, ...], tasks: anyio.abc.TaskGroup) -> None:
    for phase, workers in BOOT:
        with _phase(phase):
            if phase == "adapter config" and not set(kinds) <= {"memory"}:  # memory and the bus need no model
                check_adapters(pool.instance.config, pool.extra)
            if phase == "preferences":
                check_preferences(pool.instance.home.memory)
            for kind in workers:
                if kind in kinds:
                    await tasks.start(pool.keep, kind)


def _run_file(instance: Instance) -> RunFile:
    bus = instance.bus
    return RunFile(
        pid=os.getpid(), started_at=datetime.now(UTC), url=bus.url, user=bus.user or "",
        password=bus.password or "", gateway=instance.gateway, version=trunkline.__version__,
    )  # fmt: skip


@contextmanager
def _phase(name: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    except AlreadyRunning:
        raise
    except (TrunklineError, BusError) as error:
        raise BootError(name, error) from error
    log.info("start-up: %s", name, extra={"ms": round((time.perf_counter() - started) * 1000)})


class _OpenedStatus(anyio.abc.TaskStatus[Worker]):
    """Registers an open worker in the instance, and reports the start-up of the first one of its kind."""

    def __init__(self, instance: Instance, kind: WorkerKind, first: anyio.abc.TaskStatus[None]) -> None:
        self._instance, self._first = instance, first
        self._kind: WorkerKind = kind
        self.has_opened = False

    def started(self, value: Worker | None = None) -> None:
        assert value is not None
        self._instance.workers[self._kind] = value
        if not self.has_opened:
            self.has_opened = True
            self._first.started()


class _WorkerPool:
    """Runs workers and restarts them, each in a separate task."""

    def __init__(self, instance: Instance, load: WorkerLoader, extra: tuple[object, ...]) -> None:
        self.instance = instance
        self.extra = extra
        self._load = load
        self._settings = WorkerHostSettings(instance.config, instance.bus, extra, prepare_bus=False)
        self._stops: dict[WorkerKind, anyio.Event] = {}
        self._ended: dict[WorkerKind, anyio.Event] = {}

    async def keep(
        self, kind: WorkerKind, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Run workers of a kind, one after the other, until the platform drains. Raises the error of the first
        ``open()``."""
        worker_type = self._load(kind)
        stop, ended = anyio.Event(), anyio.Event()
        opened = _OpenedStatus(self.instance, kind, task_status)
        self._stops[kind], self._ended[kind] = stop, ended
        try:
            await self._run_restarting(worker_type, stop, opened)
        finally:
            self.instance.workers.pop(kind, None)
            ended.set()

    async def _run_restarting(
        self, worker_type: type[Worker], stop: anyio.Event, opened: _OpenedStatus
    ) -> None:
        # If the first worker of a kind cannot open, the start-up ends with its error, because no work depends on the
        # worker yet and a person reads the reason. A worker that crashes later is closed, with its contexts, before the
        # next one starts. The new worker has another id, so other workers see the end of the old one. The unfinished
        # work is recovered: inbox items that were not acknowledged are delivered again (ADR 0002), a turn continues
        # from its journal (ADR 0005), and an interrupted call is run again or is in doubt (ADR 0029). The pause ends
        # early when the platform drains.
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while not stop.is_set():
            started_at = anyio.current_time()
            try:
                settings = replace(self._settings, restarts=self.instance.restarts.get(worker_type.kind, 0))
                return await run_worker(worker_type, settings, stop, task_status=opened)
            except Exception:
                if not opened.has_opened:
                    raise
                if anyio.current_time() - started_at > STABLE_SECONDS:
                    backoff.reset()
                self._log_crash(worker_type.kind, backoff.delay)
            await backoff.wait(stop)

    def _log_crash(self, kind: WorkerKind, pause: float) -> None:
        self.instance.restarts[kind] = self.instance.restarts.get(kind, 0) + 1
        log.exception(
            "the %s worker crashed; it starts again in %g s, and the other workers continue", kind, pause
        )

    async def drain(self) -> None:
        """Drain all workers in DRAIN_ORDER."""
        for kind in DRAIN_ORDER:
            if kind in self._stops:
                self._stops[kind].set()
                await self._ended[kind].wait()


def leaf_users(remotes: Sequence[Remote]) -> tuple[LeafUser, ...]:
    """Return each remote with its key and its subjects on an embedded server: the same permissions as in
    ``deploy/nats``."""
    everybody = all_roles((), tuple(one.name for one in remotes))
    found = []
    for one in remotes:
        given = subject_permissions(remote_role(one.name), everybody)
        # The workers of an embedded server share one user, so their inboxes are distinguished below _INBOX.
        publish = tuple(subject.replace("_INBOX_", "_INBOX.") for subject in given.publish)
        found.append(LeafUser(key=one.key, publish=publish, subscribe=given.subscribe))
    return tuple(found)


def check_preferences(memory: Path) -> None:
    """Log a problem of ``preferences.toml``, a plain file in memory. The problem never stops the start."""
    path = memory / "preferences.toml"
    try:
        read_toml(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        log.debug("there is no %s; the defaults are used", path)
    except (OSError, ValueError) as error:
        log.warning("the preferences in %s cannot be read (%s); the defaults are used", path, error)
