"""``nearest``: CC-T15, the five facts of 50 000 that lie nearest, by vectors alone."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, Row
from benchmarks.memory.searching import Aim, searched

FACTS = 50_000
AIMED = Aim(p95=0.100)


async def measure(bench: Bench) -> AsyncIterator[Row]:
    """Questions of which no word is there."""
    async for row in searched(bench, bench.sized(FACTS, least=500), AIMED, words=False):
        yield row
