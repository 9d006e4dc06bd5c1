"""The runs behind ``python -m benchmarks.scale``: platforms of processes, workers that come and go. Prints nothing."""

import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx

from benchmarks.machine import CpuUsage, children
from tests.chaos.clients import HttpClient
from tests.chaos.programs import PlannedMessage
from tests.chaos.transcript import HttpTranscript
from tests.scale.concurrent_conversations import ConcurrentConversations
from tests.scale.effect_tool import PLUGIN, job, job_counts, runners
from tests.scale.invariants import verdict
from tests.scale.partition_assignment import settled
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.worker_process import WorkerProcess

PARTITIONS = 8
SLOTS = 2
"""How many turns a monitor, and calls a tools worker, of these runs has under way at once: so few that waiting limits
them and not the processors."""

CONVERSATIONS = 72
"""Conversations that talk to monitors: so many that each partition has some, but for one run in two thousand."""

CALLERS = 8
"""Conversations for each tools worker, so that its slots are hardly ever empty."""

SETTLE_SECONDS = 2.0
"""Seconds after which the monitors have heard of the last change; faults on top of each other are the chaos run's."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """A window of ``seconds``: turns that ended in it, and cores that were busy with the measured kind of worker, with
    all our processes, and with what is none of ours."""

    seconds: float
    ended: int
    workers: float
    ours: float
    others: float

    @property
    def rate(self) -> float:
        """Turns a second."""
        return self.ended / self.seconds


@dataclass(slots=True)
class ScaleRun:
    """One run with ``count`` workers: its pace, how many seconds each share-out took, and what was broken.

    ``shares`` are partitions by monitor after each change. ``spread`` is how many calls each tools worker ran.
    """

    count: int
    pace: Throughput | None = None
    turns: int = 0
    joined: float = 0.0
    left: float = 0.0
    shares: list[list[int]] = field(default_factory=list)
    spread: list[int] = field(default_factory=list)
    again: int = 0
    unknown: int = 0
    broken: list[str] = field(default_factory=list)


@asynccontextmanager
async def start_platform(
    provider: str, kinds: Sequence[WorkerKind], settings: Mapping[str, Any], **given: Any
) -> AsyncIterator[ProcessPlatform]:
    """A platform of processes in a folder of its own."""
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        **settings,
    }
    with tempfile.TemporaryDirectory(prefix="trunkline-scale-") as home:
        async with process_platform(Path(home), config=config, workers=kinds, **given) as running:
            yield running


async def measure_throughput(
    running: ProcessPlatform, conversations: ConcurrentConversations, kind: WorkerKind, seconds: float
) -> Throughput:
    """How fast turns end once every slot has been in use: after two rounds of the slots, so the ramp is not counted."""
    slots = SLOTS * sum(process.kind == kind for process in running.processes.values())
    with anyio.fail_after(120):
        while sum(said.ended.is_set() for said in conversations.everything) < 2 * slots:  # noqa: ASYNC110 - tasks note it
            await anyio.sleep(0.05)
    workers = {name: process.pid for name, process in running.processes.items() if process.kind == kind}
    usage = CpuUsage(workers, {str(pid): pid for pid in (os.getpid(), *children())})
    begin = anyio.current_time()
    await anyio.sleep(seconds)
    end = anyio.current_time()
    ours = usage.all_seconds()
    return Throughput(
        seconds=end - begin,
        ended=sum(begin <= said.end < end for said in conversations.everything),
        workers=sum(usage.seconds().values()) / (end - begin),
        ours=ours / (end - begin),
        others=usage.others(),
    )


async def monitors(provider: str, count: int, seconds: float) -> ScaleRun:
    """``count`` monitors with a model that waits a second; then one more joins, and leaves again."""
    found = ScaleRun(count)
    kinds: tuple[WorkerKind, ...] = ("gateway", "memory", "tools")
    async with start_platform(provider, kinds, {"monitor.concurrency": SLOTS}) as running:
        conversations = ConcurrentConversations(running, CONVERSATIONS, lambda _: "wait:1")
        await _start(running, "monitor", count)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversations.talk)
            await _wait_for_assignment(running, found, count)
            found.pace = await measure_throughput(running, conversations, "monitor", seconds)
            if count < PARTITIONS:
                await running.start("monitor", "joins")
                found.joined = await _wait_for_assignment(running, found, count + 1)
                running.processes["joins"].kill(signal.SIGTERM)
                found.left = await _wait_for_assignment(running, found, count)
            conversations.stopping = True
        await _check_invariants(running, conversations, found)
    return found


async def _start(running: ProcessPlatform, kind: WorkerKind, count: int) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(running.start, kind, f"{kind}-{number}")


async def _wait_for_assignment(running: ProcessPlatform, found: ScaleRun, count: int) -> float:
    share, larger = divmod(PARTITIONS, count)
    due = sorted([share + 1] * larger + [share] * (count - larger))
    seconds = await settled(running, lambda shares: sorted(shares.values()) == due, 60.0)
    found.shares.append(due)
    return seconds


async def _check_invariants(
    running: ProcessPlatform, conversations: ConcurrentConversations, found: ScaleRun
) -> None:
    judged = await verdict(running, conversations)
    found.turns, found.again = judged.turns, judged.again
    found.broken.extend(judged.broken)


async def failovers(provider: str, kills: int) -> tuple[list[float], ScaleRun]:
    """Three monitors, one of them killed again and again; seconds from each kill to each of its turns' next owner."""
    found, deaths = ScaleRun(3), list[tuple[str, float]]()
    async with start_platform(
        provider, ("gateway", "memory", "tools"), {"monitor.concurrency": 4}
    ) as running:
        conversations = ConcurrentConversations(running, CONVERSATIONS, lambda _: "wait:1")
        await _start(running, "monitor", 3)
        victims = [running.processes[f"monitor-{number}"] for number in range(3)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversations.talk)
            for number in range(kills):
                await _wait_for_assignment(running, found, 3)
                await anyio.sleep(SETTLE_SECONDS)
                victim = victims[number % 3]
                deaths.append((await _id_of(running, victim), time.time()))
                victim.kill()
                await _wait_for_assignment(running, found, 2)
                await running.restart(victim.name)
            conversations.stopping = True
        await _check_invariants(running, conversations, found)
        return await _takeovers(running, dict(deaths)), found


async def _id_of(running: ProcessPlatform, process: WorkerProcess) -> str:
    from trunkline.runtime.overview import OverviewReader

    seen = await OverviewReader(running.bus).read()
    return next(beat.id for beat in seen.workers if beat.pid == process.pid)


async def _takeovers(running: ProcessPlatform, deaths: dict[str, float]) -> list[float]:
    owners: dict[str, str] = {}
    found: list[float] = []
    async for record in running.bus.history(JOURNAL):
        before = owners.get(record.data.turn, record.data.owner)
        if before != record.data.owner and before in deaths:
            found.append(record.time.timestamp() - deaths[before])
        owners[record.data.turn] = record.data.owner
    return found


async def tools(provider: str, count: int, seconds: float) -> ScaleRun:
    """``count`` tools workers with a tool that takes a second; then one is killed in the middle of its calls."""
    found = ScaleRun(count)
    settings = {"tools.concurrency": SLOTS, "monitor.tool_idle_timeout": 3.0}
    kinds: tuple[WorkerKind, ...] = ("gateway", "memory", "monitor")
    async with start_platform(provider, kinds, settings, plugins={"job": PLUGIN}) as running:
        file = running.home.config_file.parent / "job_counts"
        await _start(running, "tools", count)
        conversations = ConcurrentConversations(running, CALLERS * count, lambda mark: job(file, mark, 1.0))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversations.talk)
            found.pace = await measure_throughput(running, conversations, "tools", seconds)
            found.spread = sorted(runners(file).values())
            running.kill("tools-0")
            if count == 1:
                await running.restart("tools-0")
            conversations.stopping = True
        await _check_invariants(running, conversations, found)
        ran = await job_counts(running, file)
        found.unknown = len(ran.unknown)
        found.broken.extend(ran.broken)
    return found


async def gateways(provider: str, clients: int) -> tuple[list[float], list[str]]:
    """Two gateways; the one that all clients stream from is killed, and they go on at the other. Seconds from the
    kill to each client's next text, and what was broken."""
    async with start_platform(provider, ("gateway", "memory", "monitor", "tools"), {}) as running:
        other = await running.start("gateway", "gateway-2")
        moved = [_FailoverClient(running, f"m{number}", other.address) for number in range(clients)]
        async with anyio.create_task_group() as tasks:
            for one in moved:
                tasks.start_soon(one.run)
            with anyio.fail_after(60):
                while not all(len(one.seen.text) > 40 for one in moved):  # noqa: ASYNC110 - tasks note it
                    await anyio.sleep(0.02)
            running.kill("gateway")
            for one in moved:
                tasks.start_soon(one.wait)
        return [one.silent for one in moved], [problem for one in moved for problem in one.problems]


class _FailoverClient:
    """A client whose gateway dies."""

    def __init__(self, running: ProcessPlatform, mark: str, other: str) -> None:
        self.seen = HttpTranscript(mark)
        self.silent = 0.0
        self._http = httpx.AsyncClient(headers={"Authorization": f"Bearer {running.token}"}, timeout=30)
        self._client = HttpClient(self._http, [running.url, other])

    async def run(self) -> None:
        """Ask, and read the answer wherever it can be read."""
        request = PlannedMessage(kind="scale", mark=self.seen.client, program="slow:100:50", ending=None)
        async with self._http:
            await self._client.say(None, request, self.seen)
            await self._client.follow(self.seen, 0)

    async def wait(self) -> None:
        """Note how long no more text comes from now on."""
        begin, had = anyio.current_time(), len(self.seen.text)
        while len(self.seen.text) == had and not self.seen.ended:  # noqa: ASYNC110 - another task notes it
            await anyio.sleep(0.005)
        self.silent = anyio.current_time() - begin

    @property
    def problems(self) -> list[str]:
        """What it saw that it should not have, or did not see."""
        whole = " ".join(f"word-{number}" for number in range(1, 101))
        return [*self.seen.problems, *([] if self.seen.text == whole else [f"it has {self.seen.text!r}"])]
