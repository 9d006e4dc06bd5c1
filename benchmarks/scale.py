"""``python -m benchmarks.scale``: more workers of a kind, that join, leave and die under a crowd of conversations.

Turns a second against the number of monitors and of tools workers, on a model and a tool that wait; how soon each
monitor has its share; how soon a dead one's turns go on; and clients whose gateway dies. Exits with 1 when anything
was lost, doubled, out of order or run at the same time as another turn of its conversation.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from statistics import median

import anyio

from benchmarks.chaos import show_progress
from benchmarks.figures import percentile, table
from benchmarks.machine import describe_machine
from benchmarks.scale_runs import (
    CALLERS,
    CONVERSATIONS,
    SLOTS,
    ScaleRun,
    failovers,
    gateways,
    monitors,
    tools,
)
from trunkline.testing.scripted_provider import provider_process


def main() -> None:
    """Run and print. SIGTERM and SIGINT end the run and every process of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--monitors", default="2,4,8", help="how many monitors, one run each (2,4,8)")
    parser.add_argument("--tools", default="1,2,4", help="how many tools workers, one run each (1,2,4)")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="how long turns are counted in a run (10)"
    )
    parser.add_argument("--kills", type=int, default=4, help="how many monitors are killed (4)")
    given = parser.parse_args()
    # A shell that starts this in the background has it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        broken = _run(given)
    except KeyboardInterrupt:
        sys.exit(130)
    if broken:
        print(f"\n{len(broken)} promises were broken:")
        print("\n".join(broken))
        sys.exit(1)
    print("\nNothing was lost, doubled, out of order, or run beside another turn of its conversation.")


def _run(given: argparse.Namespace) -> list[str]:
    print(describe_machine(), flush=True)
    with provider_process() as provider:
        return [
            *_monitors(provider, _counts(given.monitors), given.seconds),
            *_failover(provider, given.kills),
            *_tools(provider, _counts(given.tools), given.seconds),
            *_gateways(provider),
        ]


def _counts(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one.strip("0 ")]


def _monitors(provider: str, counts: list[int], seconds: float) -> list[str]:
    runs: list[ScaleRun] = []
    for count in counts:
        show_progress(f"{count} monitors, {CONVERSATIONS} conversations")
        runs.append(anyio.run(monitors, provider, count, seconds))
    slots = f"{SLOTS} turns at once in each monitor, {CONVERSATIONS} conversations"
    _print_table(f"Monitors: a model that waits 1 s, {slots}", _pace_head("monitors"), _paces(runs))
    moved = [
        (run.count, _shares(run.shares[0]), _shares(run.shares[1]), f"{run.joined:.1f}", f"{run.left:.1f}", run.again)
        for run in runs
        if len(run.shares) > 1
    ]  # fmt: skip
    head = ("monitors", "partitions", "after a join", "join s", "leave s", "model calls repeated")
    _print_table("One more monitor joins, and is stopped again: until each has its share", head, moved)
    return _named("monitors", runs)


def _pace_head(workers: str) -> tuple[str, ...]:
    return (
        workers, "turns/s", "relative to the first row", "maximum",
        f"cores of the {workers}", "cores of the benchmark", "cores of others",
    )  # fmt: skip


def _paces(runs: list[ScaleRun]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for run in runs:
        assert run.pace is not None and runs[0].pace is not None
        pace, first = run.pace, runs[0].pace.rate
        ratio = f"{pace.rate / first:.2f}" if first else ""
        cores = (f"{value:.2f}" for value in (pace.workers, pace.ours, pace.others))
        rows.append((run.count, f"{pace.rate:.1f}", ratio, SLOTS * run.count, *cores))
    return rows


def _failover(provider: str, kills: int) -> list[str]:
    if not kills:
        return []
    show_progress(f"{kills} monitors killed")
    gaps, run = anyio.run(failovers, provider, kills)
    rows = [(kills, run.turns, len(gaps), *_spread(gaps))] if gaps else []
    head = ("killed", "turns", "turns interrupted", "p50 s", "p95 s", "max s")
    _print_table("A monitor of three is killed: from the kill until the turn has its next owner", head, rows)
    return _named("failover", [run])


def _tools(provider: str, counts: list[int], seconds: float) -> list[str]:
    runs: list[ScaleRun] = []
    for count in counts:
        show_progress(f"{count} tools workers")
        runs.append(anyio.run(tools, provider, count, seconds))
    slots = f"{SLOTS} calls at once in each worker, {CALLERS} conversations for each"
    _print_table(f"Tools: a tool that takes 1 s, {slots}", _pace_head("tools workers"), _paces(runs))
    killed = [(run.count, _shares(run.spread), run.unknown) for run in runs]
    _print_table(
        "One of the tools workers is killed",
        ("tools workers", "calls of each before", "reported as unknown"),
        killed,
    )
    return _named("tools", runs)


def _gateways(provider: str) -> list[str]:
    show_progress("two gateways")
    gaps, broken = anyio.run(gateways, provider, 10)
    head = ("clients", "p50 s", "p95 s", "max s")
    _print_table("A gateway of two is killed: from the kill until its clients read on at the other", head,
         [(len(gaps), *_spread(gaps))])  # fmt: skip
    return [f"gateways: {problem}" for problem in broken]


def _print_table(title: str, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if sys.stderr.isatty():
        show_progress("")
    if rows:
        print(f"\n{title}:\n\n{table(head, rows)}", flush=True)


def _spread(gaps: list[float]) -> tuple[str, ...]:
    return tuple(f"{value:.1f}" for value in (median(gaps), percentile(gaps, 0.95), max(gaps)))


def _shares(counts: list[int]) -> str:
    return " ".join(map(str, counts))


def _named(what: str, runs: list[ScaleRun]) -> list[str]:
    return [f"{what}, {run.count}: {problem}" for run in runs for problem in run.broken]


if __name__ == "__main__":
    main()
