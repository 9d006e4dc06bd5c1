"""Whether memory stays flat: resident memory of each process while thousands of turns go by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks import deployments, machine
from benchmarks.figures import progress, table
from benchmarks.load_rounds import LOADS, run_round

CLIENTS = 20
STEPS = 10
MAX_GROWTH = 0.5
"""MiB that a process may grow in 1000 turns and still be called flat: 5 MiB in a long run of 10 000."""


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """MiB of each process, by how many turns had been."""

    sizes: Mapping[int, Mapping[str, float]]

    def growth(self, process: str) -> float:
        """MiB in 1000 turns over the second half: the first fills caches, which have bounds."""
        turns = sorted(self.sizes)
        middle, last = turns[len(turns) // 2], turns[-1]
        grown = self.sizes[last][process] - self.sizes[middle][process]
        return grown * 1000 / (last - middle)

    @property
    def processes(self) -> Sequence[str]:
        """All of them."""
        return list(self.sizes[0])


async def measure(provider: str, turns: int, ours: Mapping[str, int]) -> MemoryGrowth:
    """Talk for so many turns, with a process for each worker."""
    step = max(1, turns // STEPS)
    async with deployments.many_processes(provider) as way:
        sizes = {0: _sizes(way)}
        for done in range(step, turns + 1, step):
            one = await run_round("process per worker", way, LOADS["closed"], CLIENTS, step, ours)
            sizes[done] = _sizes(way)
            progress(f"{done} of {turns} turns, {one.rate:.0f} a second")
    progress("")
    return MemoryGrowth(sizes)


def report(flat: MemoryGrowth) -> str:
    """The table, and a verdict for each process."""
    rows = [
        [turns, *(f"{size:.0f}" for size in sizes.values())] for turns, sizes in sorted(flat.sizes.items())
    ]
    verdicts = [_verdict(flat.growth(process)) for process in flat.processes]
    return table(["turns", *flat.processes], [*rows, ["second half", *verdicts]])


def _verdict(growth: float) -> str:
    return f"+{growth:.1f} a 1000" if growth > MAX_GROWTH else "flat"


def _sizes(way: deployments.Deployment) -> dict[str, float]:
    return {name: machine.resident_mib(pid) for name, pid in way.pids.items()}
