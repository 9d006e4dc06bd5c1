"""``python -m benchmarks.turn``: what Trunkline adds to a turn, against a direct client in the same run.

Two loads on the same scripted model server:

* closed: the model answers at once and every client asks again at once. Finds saturation.
* paced: 200 ms to the first token, then 20 chunks 10 ms apart, so that waiting for a full CPU is not counted as
  overhead.

Client, model server, NATS and workers share the machine's cores.
"""

import argparse
import json
import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from time import perf_counter

import anyio

from benchmarks import ways
from benchmarks.figures import milliseconds, percentile, table
from trunkline.testing.scripted_provider import provider_process

LOADS = {"closed": "say:ok", "paced": "wait:0.2 ;; slow:20:10"}

WAYS: dict[str, Callable[[str], AbstractAsyncContextManager[ways.Way]]] = {
    "direct": ways.direct,
    "one process": ways.one_process,
    "process per worker": ways.many_processes,
}


class Round:
    """A load of so many clients on one way."""

    def __init__(
        self, way: str, load: str, clients: int, asked: Sequence[ways.Asked], seconds: float
    ) -> None:
        self.way = way
        self.load = load
        self.clients = clients
        self.first = [one.first for one in asked]
        self.rate = len(asked) / seconds

    def at(self, share: float) -> float:
        """A percentile of the seconds to the first text."""
        return percentile(self.first, share)


async def measure(name: str, way: ways.Way, load: str, clients: int, turns: int) -> Round:
    """Let ``clients`` ask one after the other until ``turns`` are done."""
    asked: list[ways.Asked] = []
    left = iter(range(turns))

    async def client() -> None:
        for _ in left:
            asked.append(await way.ask(LOADS[load]))

    began = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(clients):
            tasks.start_soon(client)
    return Round(name, load, clients, asked, perf_counter() - began)


async def run(
    provider: str, clients: Sequence[int], turns: int
) -> tuple[list[Round], dict[str, dict[str, float]]]:
    """All ways, loads and numbers of clients; and the memory of each way's processes, in MiB."""
    rounds: list[Round] = []
    memory: dict[str, dict[str, float]] = {}
    for name, enter in WAYS.items():
        async with enter(provider) as way:
            await measure(name, way, "closed", 2, 20)
            for load in LOADS:
                for count in clients:
                    wanted = max(count * 3, turns if load == "closed" else turns // 4)
                    rounds.append(await measure(name, way, load, count, wanted))
            memory[name] = {kind: ways.resident(pid) for kind, pid in way.pids.items()}
    return rounds, memory


def report(rounds: Sequence[Round], memory: dict[str, dict[str, float]]) -> str:
    """The tables."""
    base = {(one.load, one.clients): one for one in rounds if one.way == "direct"}
    rows = []
    for one in rounds:
        direct = base[one.load, one.clients]
        added = [milliseconds(one.at(share) - direct.at(share)) for share in (0.5, 0.95, 0.99)]
        shown = added if one is not direct else ["-", "-", "-"]
        rows.append([one.load, one.clients, one.way, milliseconds(one.at(0.5)), *shown, f"{one.rate:.0f}"])
    rows.sort(key=lambda row: (row[0], row[1]))
    head = ["load", "clients", "way", "first token p50 ms", "added p50", "added p95", "added p99", "turns/s"]
    sizes = [[way, kind, f"{size:.0f}"] for way, kinds in memory.items() for kind, size in kinds.items()]
    machine = (
        f"{ways.cores()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )
    return "\n\n".join([machine, table(head, rows), table(["way", "process", "resident MiB"], sizes)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn", description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 20], help="concurrent turns (1 20)")
    parser.add_argument("--turns", type=int, default=400, help="turns in each round of the closed load (400)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    given = parser.parse_args()
    with provider_process() as provider:
        rounds, memory = anyio.run(run, provider, given.clients, given.turns)
    if given.json:
        figures = [
            {"way": r.way, "load": r.load, "clients": r.clients, "p50": r.at(0.5), "p95": r.at(0.95),
             "p99": r.at(0.99), "turns_per_second": r.rate}
            for r in rounds
        ]  # fmt: skip
        print(json.dumps({"turns": figures, "resident_mib": memory}))
    else:
        print(report(rounds, memory))


if __name__ == "__main__":
    main()
