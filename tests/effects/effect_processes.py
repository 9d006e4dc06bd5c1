"""The processes that are struck: two tools workers and two monitors beside gateway and memory, on a real server."""

import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.streams import EFFECT_STREAM
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.home.kill_switch import KillSwitch
from trunkline_bus import EmbeddedServer, ServerSettings

from .lossy_relay import LossyWire

ALL_WORKERS: dict[str, WorkerKind] = {
    "tools-a": "tools", "tools-b": "tools", "monitor-a": "monitor", "monitor-b": "monitor",
    "gateway": "gateway", "memory": "memory",
}  # fmt: skip

PLUGIN = Path(__file__).with_name("boundary_plugin.py")

STARTS = 3

TIMEOUT = 120.0
"""Seconds for which the gateway is asked again: it may be busy with all that was struck."""


class FaultTarget:
    """The running platform, the folder in which calls are held, and what may be done to its processes."""

    def __init__(self, running: ProcessPlatform, wire: LossyWire) -> None:
        self.running = running
        self.wire = wire
        self.gateway = GatewayClient(running.bus, "test", timeout=TIMEOUT)
        self.latch = KillSwitch(running.home.path)
        self.folder = running.home.path / "test-plugins"
        for name in ("held", "go"):
            (self.folder / name).mkdir()

    def held(self, wave: int) -> dict[str, int]:
        """The calls that were held so far, each with the process that it was held in."""
        found = {}
        for file in (self.folder / "held").glob(f"{wave}.*"):
            text = file.read_text()
            if text:
                found[file.name] = int(text)
        return found

    def go(self, wave: int) -> None:
        """Let all stopped calls continue."""
        (self.folder / "go" / str(wave)).touch()

    def effects(self) -> list[str]:
        """The marks of all that happened, in order."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def names(self, kind: WorkerKind) -> list[str]:
        """The workers of a kind."""
        return [name for name, its in ALL_WORKERS.items() if its == kind]

    def pids(self, names: Iterable[str]) -> set[int]:
        """Their processes."""
        return {self.running.processes[name].pid for name in names} - {0}

    async def workers(self) -> dict[str, int]:
        """The process of each worker that lives, by the worker's id."""
        bucket = self.running.bus.kv(WORKER_BUCKET)
        beats = [await bucket.get(key) for key in await bucket.keys()]
        return {
            beat.value.id: beat.value.pid for beat in beats if beat is not None and beat.value is not None
        }

    def signal(self, names: Iterable[str], number: signal.Signals) -> None:
        """Send them all a signal; killed ones are gone when this returns."""
        for name in names:
            if self.running.processes[name].alive:
                self.running.processes[name].kill(number)

    async def until_gone(self, pids: Iterable[int], seconds: float = 60.0) -> None:
        """Wait until these processes have ended. Raises TimeoutError."""
        with anyio.fail_after(seconds):
            for process in self.running.processes.values():
                while process.pid in set(pids) - {0} and process.alive:  # noqa: ASYNC110 - nobody tells of it
                    await anyio.sleep(0.02)

    async def kill_server(self) -> None:
        """Kill the server; it restarts by itself, on the same port and store."""
        server = self.running.server
        before = server.restarts
        os.kill(server.pid, signal.SIGKILL)
        with anyio.fail_after(60):
            while server.restarts == before:  # noqa: ASYNC110 - the server tells nobody
                await anyio.sleep(0.02)

    async def restart_killed(self) -> None:
        """Start every worker that does not run, all at once."""
        async with anyio.create_task_group() as tasks:
            for name in ALL_WORKERS:
                process = self.running.processes.get(name)
                if process is None or not process.alive:
                    tasks.start_soon(self._start, name)

    async def _start(self, name: str) -> None:
        environ = {"TRUNKLINE_BUS__URL": self.wire.url} if ALL_WORKERS[name] == "tools" else {}
        for attempt in range(STARTS):
            try:
                await self.running.start(ALL_WORKERS[name], name, **environ)
                return
            except AssertionError:
                self.running.processes[name].kill()
                if attempt == STARTS - 1:
                    raise


@asynccontextmanager
async def started_target(home: Path, *, asking: bool = False) -> AsyncIterator[FaultTarget]:
    """Start every process, ready; with ``asking`` a person decides about each call."""
    config = {
        "runtime.provider_adapter": "scripted",
        "tools.concurrency": 1024,
        "permissions.approvals": "some" if asking else "none",
        "telemetry.traces": False,
    }
    async with AsyncExitStack() as stack:
        settings = ServerSettings(store_dir=home / "bus")
        server = await stack.enter_async_context(EmbeddedServer(settings))
        wire = await stack.enter_async_context(LossyWire(server.url, EFFECT_STREAM).laid())
        running = await stack.enter_async_context(
            process_platform(
                home, config=config, plugins={"holding": PLUGIN.read_text()}, workers=(), servers=(server,)
            )
        )
        target = FaultTarget(running, wire)
        await target.restart_killed()
        yield target
