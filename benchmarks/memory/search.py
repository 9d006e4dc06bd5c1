"""``search``: the ten best of 100 000 passages, by words and by words and vectors."""

from collections.abc import AsyncIterator

from benchmarks.memory.bench import Bench, Row
from benchmarks.memory.searching import Aim, searched

PASSAGES = 100_000
AIMED = Aim(p50=0.020, p95=0.060)


async def measure(bench: Bench) -> AsyncIterator[Row]:
    """At the size of a busy person's years."""
    async for row in searched(bench, bench.sized(PASSAGES, least=500), AIMED):
        yield row
