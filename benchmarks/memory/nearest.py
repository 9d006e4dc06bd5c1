"""``nearest``: CC-T15, the five facts of 50 000 that lie nearest, by vectors alone."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, BenchRow
from benchmarks.memory.search_timing import TimeTarget, time_searches

FACTS = 50_000
AIMED = TimeTarget(p95=0.100)


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Questions of which no word is there."""
    async for row in time_searches(bench, bench.sized(FACTS, least=500), AIMED, words=False):
        yield row
