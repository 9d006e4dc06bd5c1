"""What every figure is given and what it hands back. Measures nothing itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.figures import milliseconds, percentile
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_git_store.store import GitMemoryStore

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Where data lies that is measured with and not committed."""

NOTE = "A note of some length. " * 20


@dataclass(frozen=True)
class BenchRow:
    """A line of the table; ``met`` is None where nothing is aimed at."""

    what: str
    measured: str
    aim: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, str, str, str]:
        """As the table shows it."""
        return self.what, self.measured, self.aim, {True: "yes", False: "NO", None: ""}[self.met]


@dataclass(frozen=True)
class Bench:
    """A folder of the figure's own, and how large to measure: ``scale`` 1.0 is the size that the aim names."""

    folder: Path
    scale: float = 1.0
    data: Path = DATA

    def sized(self, full: int, least: int = 1) -> int:
        """So many at this scale."""
        return max(least, round(full * self.scale))

    @asynccontextmanager
    async def store(
        self, name: str = "store", *, sync: bool = True, embedder: Embedder | None = None
    ) -> AsyncIterator[GitMemoryStore]:
        """A store of the figure's own."""
        store = GitMemoryStore()
        await store.open(
            StoreContext(
                self.folder / name / "memory", self.folder / name / "cache", embedder=embedder, fsync=sync
            )
        )
        try:
            await store.change(
                Change({"blocks/main/block.toml": b""}, actor="benchmark", reason="Make the block")
            )
            yield store
        finally:
            await store.aclose()


async def timed(times: int, job: Callable[[int], Awaitable[object]]) -> list[float]:
    """The seconds of each of ``times`` runs, one after the other."""
    seconds = []
    for number in range(times):
        began = perf_counter()
        await job(number)
        seconds.append(perf_counter() - began)
    return seconds


def spread(seconds: list[float]) -> str:
    """Median and tails of some durations."""
    p50, p95, p99 = (milliseconds(percentile(seconds, share)) for share in (0.5, 0.95, 0.99))
    return f"p50 {p50} ms, p95 {p95} ms, p99 {p99} ms"
