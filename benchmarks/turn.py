"""``python -m benchmarks.turn``: what Trunkline adds to a turn, against a direct client of the same model server.

All ways are open at once and take turns, round by round, so that what else the machine does strikes them alike.
With ``--turns N`` it asks something else: whether memory stays flat over so many turns.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import anyio

from benchmarks import journal_cost, machine, memory_growth
from benchmarks.deployments import DEPLOYMENTS, Deployment
from benchmarks.figures import progress
from benchmarks.load_rounds import LOADS, LoadRound, run_round
from benchmarks.turn_report import TurnMeasurements, data, report
from trunkline.testing.scripted_provider import provider_process

WARM = 20
BRIEF = 1.0
"""Seconds. A shorter round only shows that it runs: with a turn for each client, hardly warmed up."""


async def measure(
    provider: str, clients: Sequence[int], seconds: float, rounds: int, ours: dict[str, int]
) -> TurnMeasurements:
    """All ways, loads and numbers of clients, so many times; each round of a load lasts ``seconds``, about."""
    async with AsyncExitStack() as stack:
        ways = {name: await stack.enter_async_context(enter(provider)) for name, enter in DEPLOYMENTS.items()}
        mine = {
            **ours,
            **{f"{name} {kind}": pid for name, way in ways.items() for kind, pid in way.pids.items()},
        }
        found: list[LoadRound] = []
        for name, way in ways.items():
            await run_round(name, way, LOADS["closed"], 2, WARM if seconds >= BRIEF else 2, mine)
        cells = [(load, count) for load in LOADS for count in clients]
        for number in range(rounds):
            for done, (load, count) in enumerate(cells):
                progress(
                    f"round {number + 1} of {rounds}, {load} with {count} clients ({done + 1} of {len(cells)})"
                )
                for name, way in ways.items():
                    turns = _turns(load, count, seconds)
                    found.append(await run_round(name, way, LOADS[load], count, turns, mine))
        progress("the journal")
        journal = await journal_cost.measure(ways["process per worker"])
        progress("")
        sizes = {name: _sizes(way) for name, way in ways.items() if way.pids}
    return TurnMeasurements(machine.describe_machine(), found, sizes, journal)


def _turns(load: str, clients: int, seconds: float) -> int:
    """How many turns take about so long: 70 a second when closed, but each client at least three, or one in brief."""
    rate = 70.0 if load == "closed" else min(70.0, clients / 0.4)
    least = 3 if seconds >= BRIEF else 1
    return max(least * clients, round(rate * seconds))


def _sizes(way: Deployment) -> Mapping[str, float]:
    return {kind: machine.resident_mib(pid) for kind, pid in way.pids.items()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.turn",
        description=__doc__.split("\n")[0],
        epilog="Examples: python -m benchmarks.turn --rounds 5 | python -m benchmarks.turn --turns 10000",
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 20, 100], help="at once (1 20 100)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median is taken (3)")
    parser.add_argument("--seconds", type=float, default=6.0, help="a round of a load lasts, about (6)")
    parser.add_argument("--quick", action="store_true", help="a few turns of everything, to see that it runs")
    parser.add_argument("--turns", type=int, help="instead: is memory flat over so many turns?")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON; times in seconds")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.seconds, given.clients = 1, 0.1, [1, 4]
    return given


def main() -> None:
    """Measure and print; what is printed is Markdown, to be pasted into docs/explanation/performance.md."""
    given = _arguments()
    with provider_process() as provider:
        ours = {"client": os.getpid(), "model": machine.children()[-1]}
        loop = {"use_uvloop": True}
        if given.turns is not None:
            grown = anyio.run(memory_growth.measure, provider, given.turns, ours, backend_options=loop)
            sizes = {str(turns): sizes for turns, sizes in grown.sizes.items()}
            print(json.dumps({"resident_mib": sizes}) if given.json else memory_growth.report(grown))
            return
        run = anyio.run(
            measure, provider, given.clients, given.seconds, given.rounds, ours, backend_options=loop
        )
    print(json.dumps(data(run)) if given.json else report(run))


if __name__ == "__main__":
    main()
