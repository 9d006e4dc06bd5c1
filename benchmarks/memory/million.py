"""``million``: as ``search``, among a million passages. Takes some ten minutes and 2 GB of disk."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, BenchRow
from benchmarks.memory.search_timing import TimeTarget, time_searches

PASSAGES = 1_000_000
AIMED = TimeTarget(p95=0.100)


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """At the size of a team's years."""
    async for row in time_searches(bench, bench.sized(PASSAGES, least=500), AIMED):
        yield row
