"""The processes on stage: every worker and the server, each on a wire of its own, kept running and struck at will.

What a supervisor such as systemd does is done here too: a worker that ended is started again.
"""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline.testing.platform import Talker
from trunkline.testing.processes import ProcessPlatform, WorkerProcess, process_platform
from trunkline_bus import connect

from .effects import PLUGIN
from .faults import WORKERS, Fault, Kind, Struck
from .wire import Wire

STARTS = 10
"""How often a worker that does not get ready is started, while the server may be away."""

DRAIN = 45.0
"""Seconds within which a worker must have drained and ended."""


class Stage:
    """The running platform, and what may be done to it. ``problems`` are those of processes."""

    def __init__(self, running: ProcessPlatform, wires: dict[str, Wire], audience: Talker) -> None:
        self.running = running
        self.audience = audience
        self.problems: list[str] = []
        self.failed_starts = 0
        self.struck: list[Struck] = []
        self._wires = wires
        self._down: set[str] = set()

    @property
    def counted(self) -> Counter[tuple[str, Kind]]:
        """The faults so far, by victim and kind."""
        return Counter((one.victim, one.kind) for one in self.struck)

    async def open(self) -> None:
        """Start all workers, at once."""
        async with anyio.create_task_group() as tasks:
            for name in WORKERS:
                tasks.start_soon(self._start, name)

    async def strike(self, fault: Fault, tasks: TaskGroup) -> str:
        """Strike the first preferred victim that is up, and go on with the rest of it in the background."""
        while True:
            victim = next((name for name in fault.preferred if name not in self._down), None)
            if victim is not None:
                break
            await anyio.sleep(0.05)
        self.struck.append(Struck(anyio.current_time(), victim, fault.kind(victim), alone=not self._down))
        self._down.add(victim)
        tasks.start_soon(self._suffer, victim, fault.kind(victim), fault)
        return victim

    async def watch_over(self) -> None:
        """Start again who ended without being struck; that is a problem. Runs until cancelled."""
        while True:
            for name in WORKERS:
                if name not in self._down and not self._process(name).alive:
                    self._down.add(name)
                    self.problems.append(f"{name} ended by itself:\n{self._process(name).text()[-3000:]}")
                    await self._start(name)
                    self._down.discard(name)
            await anyio.sleep(0.2)

    async def _suffer(self, victim: str, kind: Kind, fault: Fault) -> None:
        try:
            match kind:
                case "cut":
                    self._wires[victim].cut()
                case "stop":
                    await self._stop(victim, fault.hold)
                case "kill" | "drain" if victim == "nats":
                    await self._end_server(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
                case "kill":
                    self.running.kill(victim)
                    await anyio.sleep(fault.down)
                    await self._start(victim)
                case "drain":
                    await self._drain(victim)
                    await anyio.sleep(fault.down)
                    await self._start(victim)
        finally:
            self._down.discard(victim)

    async def _stop(self, victim: str, seconds: float) -> None:
        pid = self.running.server.pid if victim == "nats" else self._process(victim).pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await anyio.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

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

    async def _end_server(self, number: signal.Signals) -> None:
        server, before = self.running.server, self.running.server.restarts
        os.kill(server.pid, number)
        with anyio.move_on_after(30) as patience:
            while server.restarts == before:  # noqa: ASYNC110 - the server tells nobody
                await anyio.sleep(0.05)
        if patience.cancelled_caught:
            self.problems.append("nats-server did not come back in 30 s")

    async def _start(self, name: str) -> None:
        for attempt in range(STARTS):
            try:
                await self.running.start(WORKERS[name], name, TRUNKLINE_BUS__URL=self._wires[name].url)
                return
            except AssertionError:
                self.failed_starts += 1
                self._process(name).kill()
                await anyio.sleep(0.2 * (attempt + 1))
        self.problems.append(f"{name} could not be started:\n{self._process(name).text()[-3000:]}")

    def _process(self, name: str) -> WorkerProcess:
        return self.running.processes[name]


@asynccontextmanager
async def on_stage(home: Path, provider: str, port: int) -> AsyncIterator[Stage]:
    """Everything up and ready. ``port`` is the gateway's."""
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "gateway.port": port,
    }
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(
            process_platform(home, config=config, plugins={"chaos_tools": PLUGIN}, workers=())
        )
        wires = {
            name: await stack.enter_async_context(Wire(running.server.url).laid())
            for name in (*WORKERS, "client")
        }
        settings = running.bus.link.settings
        watching = msgspec.structs.replace(settings, url=wires["client"].url, name="audience")
        audience = Talker(await stack.enter_async_context(connect(watching)))
        stage = Stage(running, wires, audience)
        await stage.open()
        yield stage
