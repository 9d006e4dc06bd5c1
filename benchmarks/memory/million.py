"""``million``: as ``search``, among a million passages. Takes some ten minutes and 2 GB of disk."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, Row
from benchmarks.memory.searching import Aim, searched

PASSAGES = 1_000_000
AIMED = Aim(p95=0.100)


async def measure(bench: Bench) -> AsyncIterator[Row]:
    """At the size of a team's years."""
    async for row in searched(bench, bench.sized(PASSAGES, least=500), AIMED):
        yield row
