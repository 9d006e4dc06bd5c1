"""``python -m benchmarks.scale``: more workers of a kind, that join, leave and die under a crowd of conversations.

Turns a second against the number of monitors and of tools workers, on a model and a tool that wait; how soon each
monitor has its share; how soon a dead one's turns go on; and clients whose gateway dies. Exits with 1 when anything
was lost, doubled, out of order or run at the same time as another turn of its conversation.
"""

import argparse
import sys
from collections.abc import Sequence
from statistics import median

import anyio

from benchmarks.chaos import show
from benchmarks.figures import percentile, table
from benchmarks.scale_runs import Scaled, failovers, gateways, monitors, tools
from trunkline.testing.scripted_provider import provider_process


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--monitors", default="2,4,8", help="how many monitors, one run each (2,4,8)")
    parser.add_argument("--tools", default="1,2,4", help="how many tools workers, one run each (1,2,4)")
    parser.add_argument("--people", type=int, default=200, help="conversations that talk to monitors (200)")
    parser.add_argument(
        "--seconds", type=float, default=15.0, help="how long turns are counted in each run (15)"
    )
    parser.add_argument(
        "--kills", type=int, default=6, help="how many monitors are killed for the failover (6)"
    )
    given = parser.parse_args()
    with provider_process() as provider:
        broken = [
            *_monitors(provider, _counts(given.monitors), given.people, given.seconds),
            *_failover(provider, given.kills),
            *_tools(provider, _counts(given.tools), given.seconds),
            *_gateways(provider),
        ]
    if broken:
        print(f"\n{len(broken)} promises were broken:")
        print("\n".join(broken))
        sys.exit(1)
    print("\nNothing was lost, doubled, out of order, or run beside another turn of its conversation.")


def _counts(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


def _monitors(provider: str, counts: list[int], people: int, seconds: float) -> list[str]:
    runs: list[Scaled] = []
    for count in counts:
        show(f"{count} monitors, {people} conversations")
        runs.append(anyio.run(monitors, provider, count, people, seconds))
    rows = [
        (run.count, f"{run.rate:.1f}", run.turns, _shares(run.shares[0]), _shares(run.shares[1]),
         f"{run.joined:.1f}", f"{run.left:.1f}", run.again)
        for run in runs
    ]  # fmt: skip
    head = (
        "monitors",
        "turns/s",
        "turns in all",
        "partitions",
        "after a join",
        "join s",
        "leave s",
        "asked again",
    )
    _say(
        f"Monitors: {people} conversations, a model that waits 2 s, 4 turns at once in each monitor",
        head,
        rows,
    )
    return _named("monitors", runs)


def _failover(provider: str, kills: int) -> list[str]:
    if not kills:
        return []
    show(f"{kills} monitors killed")
    gaps, run = anyio.run(failovers, provider, kills, 60)
    rows = [(kills, run.turns, len(gaps), *_spread(gaps))] if gaps else []
    head = ("killed", "turns", "turns cut", "p50 s", "p95 s", "max s")
    _say("A monitor of three is killed: from the kill until the turn has its next owner", head, rows)
    return _named("failover", [run])


def _tools(provider: str, counts: list[int], seconds: float) -> list[str]:
    runs: list[Scaled] = []
    for count in counts:
        show(f"{count} tools workers")
        runs.append(anyio.run(tools, provider, count, 40, seconds))
    rows = [(run.count, f"{run.rate:.1f}", run.turns, _shares(run.spread), run.unknown) for run in runs]
    head = ("tools workers", "turns/s", "turns in all", "calls of each", "told unknown after a kill")
    _say("Tools: 40 conversations, a tool that takes 1 s, 4 calls at once in each worker", head, rows)
    return _named("tools", runs)


def _gateways(provider: str) -> list[str]:
    show("two gateways")
    gaps, broken = anyio.run(gateways, provider, 10)
    head = ("clients", "p50 s", "p95 s", "max s")
    _say("A gateway of two is killed: from the kill until its clients read on at the other", head,
         [(len(gaps), *_spread(gaps))])  # fmt: skip
    return [f"gateways: {problem}" for problem in broken]


def _say(title: str, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    if sys.stderr.isatty():
        show("")
    if rows:
        print(f"\n{title}:\n\n{table(head, rows)}", flush=True)


def _spread(gaps: list[float]) -> tuple[str, ...]:
    return tuple(f"{value:.1f}" for value in (median(gaps), percentile(gaps, 0.95), max(gaps)))


def _shares(counts: list[int]) -> str:
    return " ".join(map(str, counts))


def _named(what: str, runs: list[Scaled]) -> list[str]:
    return [f"{what}, {run.count}: {problem}" for run in runs for problem in run.broken]


if __name__ == "__main__":
    main()
