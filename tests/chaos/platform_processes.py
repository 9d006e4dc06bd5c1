"""The processes of a run: every worker and the servers, each on a separate relay, kept running and struck by faults.

The module also does the work of a supervisor such as systemd: a worker that ended is started again.
"""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup

from tests.ports import free_port
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.testing.platform import PlatformClient
from trunkline.testing.worker_process import WorkerProcess
from trunkline_bus import EmbeddedServer, connect

from .disks import Disk, small_disk
from .effects import PLUGIN
from .faults import DISKS, LEADERS, WORKERS, Fault, InjectedFault, Kind
from .servers import Servers, cluster, one_server
from .tcp_relay import Wire

STARTS = 10
"""How often a worker that does not get ready is started, while the server may be away."""

DRAIN = 45.0
"""Seconds within which a worker must have drained and ended."""


CALM = 1.0
"""Seconds for which everybody must be up before a fault counts as one that struck alone."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The processes of a run: the number of servers, and whether their disks are small."""

    servers: int = 1
    disks: bool = False


class FaultTarget:
    """The running platform, and what may be done to it. ``problems`` are those of processes."""

    def __init__(
        self,
        running: ProcessPlatform,
        servers: Servers,
        wires: Mapping[str, Wire],
        ports: Mapping[str, int],
        disks: Mapping[str, Disk],
        audience: PlatformClient,
    ) -> None:
        self.running = running
        self.servers = servers
        self.audience = audience
        self.problems: list[str] = []
        self.failed_starts = 0
        self.struck: list[InjectedFault] = []
        self._wires = wires
        self._ports = ports
        self._disks = disks
        self._down: set[str] = set()
        self._calm_since = anyio.current_time()
        self._all_up = anyio.Event()

    @property
    def gateways(self) -> list[str]:
        """The HTTP addresses."""
        return [f"http://127.0.0.1:{port}" for port in self._ports.values()]

    @property
    def counted(self) -> Counter[tuple[str, Kind]]:
        """The faults so far, by victim and kind."""
        return Counter((one.victim, one.kind) for one in self.struck)

    async def open(self) -> None:
        """Start all workers, at once."""
        async with anyio.create_task_group() as tasks:
            for name in WORKERS:
                tasks.start_soon(self._start, name)
        if self.problems:
            raise AssertionError("\n".join(self.problems))

    async def until_all_up(self) -> None:
        """Return once no process is down."""
        while self._down:
            self._all_up = anyio.Event()
            await self._all_up.wait()

    async def strike(self, fault: Fault, tasks: TaskGroup) -> str:
        """Strike the first preferred victim that is up, and complete the fault in the background."""
        while True:
            for wished in fault.preferred:
                victim = await self._found(wished)
                if victim is not None and victim not in self._down:
                    self._inject(wished, victim, fault, tasks)
                    return wished
            await anyio.sleep(0.05)

    async def _found(self, wished: str) -> str | None:
        """Return the current process of this role: leaders change."""
        return await self.servers.leader(wished, self.running.bus) if wished in LEADERS else wished

    def _inject(self, wished: str, victim: str, fault: Fault, tasks: TaskGroup) -> None:
        now, kind = anyio.current_time(), fault.kind(wished)
        alone = not self._down and now - self._calm_since >= CALM
        self.struck.append(InjectedFault(now, wished, kind, alone))
        self._down.add(victim)
        tasks.start_soon(self._suffer, victim, kind, fault)

    def _up_again(self, victim: str) -> None:
        self._down.discard(victim)
        self._calm_since = anyio.current_time()
        self._all_up.set()

    async def watch_over(self) -> None:
        """Start again who ended without being struck; that is a problem. Runs until cancelled."""
        while True:
            for name in WORKERS:
                if name not in self._down and not self._process(name).alive:
                    self._down.add(name)
                    self.problems.append(f"{name} ended by itself:\n{self._process(name).text()[-3000:]}")
                    await self._start(name)
                    self._up_again(name)
            await anyio.sleep(0.2)

    async def _suffer(self, victim: str, kind: Kind, fault: Fault) -> None:
        server = self.servers.named.get(victim)
        try:
            match kind:
                case "cut":
                    self._wires[victim].cut()
                case "stop":
                    await _hold(self._process(victim).pid if server is None else server.pid, fault.hold)
                case "full":
                    await _fill(self._disks[victim], fault.hold)
                case "kill" | "drain" if server is not None:
                    await self._end_server(server, signal.SIGKILL if kind == "kill" else signal.SIGTERM)
                case "kill":
                    self.running.kill(victim)
                    await anyio.sleep(fault.down)
                    await self._start(victim)
                case "drain":
                    await self._drain(victim)
                    await anyio.sleep(fault.down)
                    await self._start(victim)
        finally:
            self._up_again(victim)

    async def _drain(self, victim: str) -> None:
        process = self._process(victim)
        process.kill(signal.SIGTERM)
        try:
            status = await process.gone(DRAIN)
        except TimeoutError:
            self.problems.append(f"{victim} did not drain in {DRAIN:g} s:\n{process.text()[-3000:]}")
            process.kill()
            return
        if status != 0:
            self.problems.append(f"{victim} drained with exit status {status}:\n{process.text()[-3000:]}")

    async def _end_server(self, server: EmbeddedServer, number: signal.Signals) -> None:
        before = server.restarts
        os.kill(server.pid, number)
        with anyio.move_on_after(60) as scope:
            while server.restarts == before:  # noqa: ASYNC110 - the server tells nobody
                await anyio.sleep(0.05)
        back = not scope.cancelled_caught and await self.servers.until_healthy(server.settings.name, 60)
        if not back:
            self.problems.append(f"{server.settings.name} did not come back in 60 s")

    async def _start(self, name: str) -> None:
        for attempt in range(STARTS):
            try:
                await self.running.start(WORKERS[name], name, **self._environ(name))
                return
            except AssertionError:
                self.failed_starts += 1
                self._process(name).kill()
                await anyio.sleep(0.2 * (attempt + 1))
        self.problems.append(f"{name} could not be started:\n{self._process(name).text()[-3000:]}")

    def _environ(self, name: str) -> dict[str, str]:
        environ = {"TRUNKLINE_BUS__URL": self._wires[name].url}
        return (
            {**environ, "TRUNKLINE_GATEWAY__PORT": str(self._ports[name])} if name in self._ports else environ
        )

    def _process(self, name: str) -> WorkerProcess:
        return self.running.processes[name]


async def _hold(pid: int, seconds: float) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        await anyio.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _fill(disk: Disk, seconds: float) -> None:
    try:
        with anyio.move_on_after(seconds):
            while True:  # what is deleted meanwhile makes room, too
                await anyio.to_thread.run_sync(disk.fill)
                await anyio.sleep(0.1)
    finally:
        disk.empty()


@asynccontextmanager
async def started_target(home: Path, provider: str, setting: Setting) -> AsyncIterator[FaultTarget]:
    """Start every process, ready."""
    config: dict[str, object] = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "bus.replicas": setting.servers,
        "approvals.deadline": 600,
        "models.prices": {"openai/scripted": {"input": 1.0, "output": 10.0}},
        "plugins.budget.max_daily_spend": 1_000.0,
    }
    async with AsyncExitStack() as stack:
        disks = _mounted(stack, home) if setting.disks else {}
        bus = home / "bus"
        if disks:
            bus = disks["bus disk"].root
            config["runtime.memory_root"] = str(disks["memory disk"].root)
        serving = cluster(bus, setting.servers) if setting.servers > 1 else one_server(bus)
        servers = await stack.enter_async_context(serving)
        plugins = {"chaos_tools": PLUGIN}
        running = await stack.enter_async_context(
            process_platform(home, config=config, plugins=plugins, workers=(), servers=servers.all)
        )
        url = ",".join(server.url for server in servers.all)
        wires = {name: await stack.enter_async_context(Wire(url).laid()) for name in (*WORKERS, "client")}
        settings = running.bus.link.settings
        watching = msgspec.structs.replace(settings, url=wires["client"].url, name="audience")
        audience = PlatformClient(await stack.enter_async_context(connect(watching)))
        gateways = [name for name, kind in WORKERS.items() if kind == "gateway"]
        ports = {name: free_port() for name in gateways}
        target = FaultTarget(running, servers, wires, ports, disks, audience)
        await target.open()
        yield target


def _mounted(stack: AsyncExitStack, home: Path) -> dict[str, Disk]:
    return {name: stack.enter_context(small_disk(home / name.replace(" ", "-"))) for name in DISKS}
