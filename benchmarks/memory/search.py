"""``search``: the ten best of 100 000 passages, by words and by words and vectors."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, BenchRow
from benchmarks.memory.search_timing import TimeTarget, time_searches

PASSAGES = 100_000
AIMED = TimeTarget(p50=0.020, p95=0.060)


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """At the size of a busy person's years."""
    async for row in time_searches(bench, bench.sized(PASSAGES, least=500), AIMED):
        yield row
