"""A platform of real processes: each worker its own, and a server, all of which a test may kill.

The workers are ``trunkline run WORKER``, as an operator would run them; the server is embedded in the test's process
and started again, on the same port and store, when it is killed.
"""

import os
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from trunkline.config import load_config
from trunkline.config.editor import write_settings
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.home.paths import Home
from trunkline.runtime.connection_settings import bus_settings, server_settings
from trunkline.testing.platform import DEFAULTS, PlatformClient, clean_environ, make_block
from trunkline.testing.worker_process import WorkerProcess
from trunkline.workers import KINDS
from trunkline_bus import Bus, EmbeddedServer, connect

KILLED = {"plugins.max_crashes": 0}
"""Who kills workers for a test must not put away the plugins that they were at work in."""


class ProcessPlatform(PlatformClient):
    """The processes, and a connection of the test's own to talk over."""

    def __init__(
        self,
        bus: Bus,
        home: Home,
        servers: Sequence[EmbeddedServer],
        environ: Mapping[str, str],
        *,
        timeout: float,
    ) -> None:
        super().__init__(bus, timeout=timeout)
        self.home = home
        self.servers = tuple(servers)
        self.environ = environ
        self.processes: dict[str, WorkerProcess] = {}

    @property
    def server(self) -> EmbeddedServer:
        """The only server, or the first one of a cluster."""
        return self.servers[0]

    async def start(self, kind: WorkerKind, name: str | None = None, **environ: str) -> WorkerProcess:
        """Start a worker, or start it again, and wait until it is ready."""
        process = self._made(kind, name or kind, environ)
        process.launch()
        await process.ready()
        return process

    async def start_all(self, kinds: Sequence[WorkerKind]) -> None:
        """Start one worker of each kind, all at once."""
        processes = [self._made(kind, kind, {}) for kind in kinds]
        for process in processes:
            process.launch()
        for process in processes:
            await process.ready()

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill a worker by its name, or the server as ``nats`` (which restarts by itself)."""
        if name == "nats":
            os.kill(self.server.pid, number)
        else:
            self.processes[name].kill(number)

    async def restart(self, name: str) -> WorkerProcess:
        """Start a killed worker again."""
        return await self.start(self.processes[name].kind, name)

    def logs(self) -> str:
        """Return the logs of all workers, for a failing test to show."""
        return "\n".join(f"--- {name}\n{process.text()}" for name, process in self.processes.items())

    @property
    def url(self) -> str:
        """The gateway's HTTP address."""
        return next(process.address for process in self.processes.values() if process.kind == "gateway")

    @property
    def token(self) -> str:
        """The bearer token for the HTTP surface."""
        return self.home.token_file.read_text().strip()

    def _made(self, kind: WorkerKind, name: str, environ: Mapping[str, str]) -> WorkerProcess:
        if name not in self.processes:
            log = self.home.logs / f"{name}.log"
            self.processes[name] = WorkerProcess(kind, name, log, {**self.environ, **environ})
        return self.processes[name]


@asynccontextmanager
async def process_platform(
    home: Path | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    plugins: Mapping[str, str] | None = None,
    workers: Sequence[WorkerKind] = KINDS,
    servers: Sequence[EmbeddedServer] = (),
    timeout: float = 60.0,
) -> AsyncIterator[ProcessPlatform]:
    """Run workers as processes until the block is left, which kills them.

    Args:
        home: The home folder; a temporary one by default.
        config: Settings by dotted key, over ``DEFAULTS``; written to ``trunkline.toml``.
        environ: Variables for the workers, over a clean environment.
        plugins: Plugins for the workers: the text of a module by its name. They become files of a
            ``runtime.tool_sources`` folder.
        workers: Which kinds to start; more can be started with ``start``.
        servers: Servers that run already, a cluster with one password; by default one is started.
        timeout: How long ``say`` waits for the end of a turn, in seconds.
    """
    async with AsyncExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-")))
        write_settings(home / "trunkline.toml", _settings(home, config, plugins))
        theirs = {**clean_environ(), "PYTHONUNBUFFERED": "1", "TRUNKLINE_HOME": str(home), **(environ or {})}
        if not servers:
            embedded = server_settings(load_config(home, environ=theirs), home / "bus")
            servers = (await stack.enter_async_context(EmbeddedServer(embedded)),)
        bus_environ = {
            "TRUNKLINE_BUS__URL": ",".join(server.url for server in servers),
            "TRUNKLINE_BUS__USER": servers[0].user,
            "TRUNKLINE_BUS__PASSWORD": servers[0].password,
        }
        everything = {**bus_environ, **theirs}
        read = load_config(home, environ=everything)
        places = Home.of(read)
        places.prepare()
        make_block(places.memory, workers)
        settings = msgspec.structs.replace(bus_settings(read), name="test")
        bus = await stack.enter_async_context(connect(settings))
        running = ProcessPlatform(bus, places, servers, everything, timeout=timeout)
        stack.callback(_kill_all, running)
        await running.start_all(workers)
        yield running


def _settings(
    home: Path, config: Mapping[str, Any] | None, plugins: Mapping[str, str] | None
) -> dict[str, Any]:
    settings: dict[str, Any] = {**DEFAULTS, **KILLED, **(config or {})}
    if plugins:
        folder = home / "test-plugins"
        folder.mkdir(parents=True)
        for name, text in plugins.items():
            (folder / f"{name}.py").write_text(text)
        settings["runtime.tool_sources"] = [str(folder)]
    return settings


def _kill_all(running: ProcessPlatform) -> None:
    for process in running.processes.values():
        process.kill()
