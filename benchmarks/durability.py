"""``python -m benchmarks.durability``: what each durability knob costs here, beside its default in the same run.

Acknowledged writes are timed alone: one after the other, records of the journal's size. Turns are measured with a
process for each worker, the default and one choice at a time open together and asked in turn. What each choice
protects from is in docs/explanation/durability.md.
"""

import argparse
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio

from benchmarks import deployments, machine
from benchmarks.cluster import cluster
from benchmarks.figures import milliseconds, percentile, progress, table
from benchmarks.load_rounds import LOADS, LoadRound, run_round
from trunkline.contracts.turns.journal_messages import ModelCallFinished, TurnRecord
from trunkline.testing.scripted_provider import provider_process
from trunkline_bus import (
    Bus,
    BusSettings,
    EmbeddedServer,
    ServerSettings,
    StreamSpec,
    Subject,
    Topic,
    Topology,
    apply,
    connect,
)

CLIENTS = 20
RECORD = TurnRecord(
    turn="turn", epoch=1, owner="bench", entries=(ModelCallFinished(step=0, text="word " * 80),)
)
"""About as large as the largest record of a short turn."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting, its default as it is written, and the other choices. ``load`` is the one that shows its cost."""

    key: str
    default: Any
    others: tuple[Any, ...]
    load: str = "closed"


KNOBS = (
    Knob("bus.sync_interval", "always", (10,)),
    Knob("bus.feed_storage", "file", ("memory",), "paced"),
    Knob("monitor.text_flush_seconds", 0.015, (0, 0.05, 0.1), "paced"),
    Knob("memory.commit_window", 0.004, (0, 0.02)),
    Knob("memory.fsync", True, (False,)),
)


@dataclass(frozen=True, slots=True)
class KnobCost:
    """A choice against its default: a ratio each, and the milliseconds to the first text with one client."""

    knob: Knob
    choice: Any
    rate: float
    cpu: float
    first: float
    first_default: float


# Turns -------------------------------------------------------------------------------------------------------


async def turn_costs(
    provider: str, ours: Mapping[str, int], knobs: Sequence[Knob], rounds: int, seconds: float
) -> AsyncIterator[KnobCost]:
    """Each choice of each of the knobs."""
    for knob in knobs:
        for choice in knob.others:
            progress(f"{knob.key} = {choice}")
            async with AsyncExitStack() as stack:
                pair = [
                    await stack.enter_async_context(deployments.many_processes(provider, {knob.key: value}))
                    for value in (knob.default, choice)
                ]
                yield await _compare(knob, choice, pair, ours, rounds, seconds)


async def _compare(
    knob: Knob,
    choice: Any,
    pair: Sequence[deployments.Deployment],
    ours: Mapping[str, int],
    rounds: int,
    seconds: float,
) -> KnobCost:
    mine = {**ours, **{f"{n} {kind}": pid for n, way in enumerate(pair) for kind, pid in way.pids.items()}}
    busy, alone = LOADS[knob.load], LOADS["closed"]
    turns = max(CLIENTS, round(40 * seconds))
    for way in pair:
        await run_round("", way, alone, 2, 10, mine)
    full: list[list[LoadRound]] = []
    quiet: list[list[LoadRound]] = []
    for _ in range(rounds):
        full.append([await run_round("", way, busy, CLIENTS, turns, mine) for way in pair])
        quiet.append([await run_round("", way, alone, 1, max(5, turns // 8), mine) for way in pair])
    return KnobCost(
        knob,
        choice,
        rate=median(other.rate / default.rate for default, other in full),
        cpu=median(_cpu(other) / _cpu(default) for default, other in full),
        first=median(other.at(0.5) for _, other in quiet),
        first_default=median(default.at(0.5) for default, _ in quiet),
    )


def _cpu(one: LoadRound) -> float:
    """Seconds of CPU a turn of everything but client and model."""
    return sum(used for name, used in one.cpu.items() if name not in ("client", "model"))


# Writes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteTimes:
    """Seconds that acknowledged writes took, one after the other."""

    name: str
    seconds: tuple[float, ...]


@asynccontextmanager
async def single_server(sync: Any) -> AsyncIterator[Bus]:
    """A connection to an embedded server of its own."""
    with TemporaryDirectory(prefix="trunkline-bench-") as folder:
        async with EmbeddedServer(ServerSettings(store_dir=Path(folder), sync=sync)) as server:
            settings = BusSettings(url=server.url, user=server.user, password=server.password)
            async with connect(settings) as bus:
                yield bus


STORAGES: tuple[tuple[str, StreamSpec], ...] = (
    ("file", StreamSpec(name="FILE", subjects=("file.*",))),
    ("file, persisted later", StreamSpec(name="LATER", subjects=("later.*",), persist_async=True)),
    ("memory", StreamSpec(name="MEMORY", subjects=("memory.*",), storage="memory")),
)


async def write_costs(times: int) -> list[WriteTimes]:
    """Acknowledged writes: by sync interval and place on one server, and by replicas on three."""
    found: list[WriteTimes] = []
    async with AsyncExitStack() as stack:
        strict = await stack.enter_async_context(single_server("always"))
        easy = await stack.enter_async_context(single_server(10))
        progress("three servers")
        strict_three = await stack.enter_async_context(cluster("always"))
        easy_three = await stack.enter_async_context(cluster('"2m"'))
        cases: list[tuple[str, Bus, StreamSpec]] = []
        for name, spec in STORAGES:
            cases.append((f"1 server, sync always, {name}", strict, spec))
        cases.append(("1 server, sync after 10 s, file", easy, STORAGES[0][1]))
        for name, bus in (("always", strict_three), ("after 2 min", easy_three)):
            for replicas in (1, 3):
                spec = StreamSpec(name=f"R{replicas}", subjects=(f"r{replicas}.*",), replicas=replicas)
                cases.append((f"3 servers, sync {name}, {replicas} replicas", bus, spec))
        for _, bus, spec in cases:
            await apply(bus, Topology(streams=(spec,)))
        seconds: dict[str, list[float]] = {name: [] for name, _, _ in cases}
        for _ in range(4):  # in turn, so that what else the machine does strikes all alike
            for name, bus, spec in cases:
                progress(name)
                seconds[name] += await _time_writes(bus, spec, max(1, times // 4))
    for name, took in seconds.items():
        found.append(WriteTimes(name, tuple(took)))
    return found


async def _time_writes(bus: Bus, spec: StreamSpec, times: int) -> list[float]:
    subject = spec.subjects[0].replace("*", "{turn}")
    topic = Topic(name=spec.name, subject=Subject(subject), payload=TurnRecord, stream=spec.name)
    took = []
    for _ in range(times):
        began = perf_counter()
        await bus.append(topic, RECORD, turn="one")
        took.append(perf_counter() - began)
    return took


# Printing ----------------------------------------------------------------------------------------------------


def report(writes: Sequence[WriteTimes], costs: Sequence[KnobCost]) -> str:
    """The tables, as Markdown."""
    rows = [[w.name, *(milliseconds(percentile(w.seconds, share)) for share in (0.5, 0.99))] for w in writes]
    written = table(["acknowledged write", "p50 ms", "p99 ms"], rows)
    lines = [
        [
            cost.knob.key,
            _shown(cost.knob.default),
            _shown(cost.choice),
            cost.knob.load,
            f"{cost.rate:.2f}",
            f"{cost.cpu:.2f}",
            milliseconds(cost.first - cost.first_default),
        ]
        for cost in costs
    ]
    head = ["setting", "default", "choice", "load", "turns/s, ratio to default", "CPU per turn, ratio to default",
            "first token, 1 client, added ms"]  # fmt: skip
    note = f"Turns: {CLIENTS} clients, a process for each worker, choice and default in turn; medians of the rounds."
    return "\n\n".join([f"{machine.describe_machine()}.", written, note, table(head, lines)])


def _shown(value: Any) -> str:
    return json.dumps(value)


def data(writes: Sequence[WriteTimes], costs: Sequence[KnobCost]) -> dict[str, Any]:
    """The same for programs. Times in seconds."""
    return {
        "machine": machine.describe_machine(),
        "writes": [
            {"name": w.name, "p50": percentile(w.seconds, 0.5), "p99": percentile(w.seconds, 0.99)}
            for w in writes
        ],
        "turns": [
            {
                "knob": c.knob.key,
                "default": c.knob.default,
                "choice": c.choice,
                "rate_ratio": c.rate,
                "cpu_ratio": c.cpu,
                "first_token": c.first,
                "first_token_default": c.first_default,
            }
            for c in costs
        ],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.durability",
        description=__doc__.split("\n")[0],
        epilog="Example: python -m benchmarks.durability --rounds 5",
    )
    parser.add_argument("--rounds", type=int, default=3, help="of which the median is taken (3)")
    parser.add_argument("--seconds", type=float, default=5.0, help="a round lasts, about (5)")
    parser.add_argument("--writes", type=int, default=1_000, help="acknowledged writes of each kind (1000)")
    parser.add_argument("--knob", choices=[knob.key for knob in KNOBS], help="turns with this one only")
    parser.add_argument("--quick", action="store_true", help="a few writes, a few turns with one knob")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON; times in seconds")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.seconds, given.writes, given.knob = 1, 0.1, 8, given.knob or "bus.sync_interval"
    with provider_process() as provider:
        ours = {"client": os.getpid(), "model": machine.children()[-1]}
        writes, costs = anyio.run(_all, provider, ours, given, backend_options={"use_uvloop": True})
    progress("")
    print(json.dumps(data(writes, costs)) if given.json else report(writes, costs))


async def _all(
    provider: str, ours: Mapping[str, int], given: argparse.Namespace
) -> tuple[list[WriteTimes], list[KnobCost]]:
    writes = await write_costs(given.writes)
    knobs = [knob for knob in KNOBS if given.knob in (None, knob.key)]
    return writes, [c async for c in turn_costs(provider, ours, knobs, given.rounds, given.seconds)]


if __name__ == "__main__":
    main()
