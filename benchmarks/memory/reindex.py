"""``reindex``: the whole index anew, words alone; a file for each chunk."""

from collections.abc import AsyncIterator
from time import perf_counter

from benchmarks.figures import progress
from benchmarks.memory.bench import Bench, BenchRow
from benchmarks.memory.corpus import Corpus
from trunkline.contracts.memory.index import IndexProgress

CHUNKS = 50_000
AIM = 10_000


async def measure(bench: Bench) -> AsyncIterator[BenchRow]:
    """Put chunks there, take them in, then make the index anew."""
    count = bench.sized(CHUNKS, least=200)
    progress(f"writing {count} chunks")
    Corpus().chunks(bench.folder / "store" / "memory", count)
    async with bench.store(sync=False) as store:
        await store.index_stats()
        await store.pack(now=True)
        began = perf_counter()
        stats = await store.reindex(_show)
        rate = count / (perf_counter() - began)
        yield BenchRow(f"reindex {count} chunks", f"{rate:.0f} chunks/s", f"≥ {AIM} chunks/s", rate >= AIM)
        yield BenchRow("index", f"{stats.size / count:.0f} bytes a chunk")


def _show(said: IndexProgress) -> None:
    if said.done % 5_000 == 0:
        progress(f"indexed {said.done} of {said.total} files")
