"""Searches among many passages: how they are put there, asked for and timed."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import anyio

from benchmarks.figures import percentile, progress
from benchmarks.memory.bench import Bench, BenchRow, spread
from benchmarks.memory.corpus import Corpus
from trunkline.contracts.memory.embedder import Embedder, Vector
from trunkline.contracts.memory.search import SearchMemory
from trunkline_git_store.store import GitMemoryStore

QUESTIONS = 200
DIMENSIONS = 256


@dataclass(frozen=True)
class TimeTarget:
    """Seconds; None where nothing is aimed at."""

    p95: float
    p50: float | None = None

    def __str__(self) -> str:
        median = "" if self.p50 is None else f"p50 ≤ {self.p50 * 1000:.0f} ms, "
        return f"{median}p95 ≤ {self.p95 * 1000:.0f} ms"

    def is_met(self, seconds: list[float]) -> bool:
        """Whether some durations are within it."""
        median = self.p50 is None or percentile(seconds, 0.5) <= self.p50
        return median and percentile(seconds, 0.95) <= self.p95


class RandomEmbedder(Embedder):
    """Vectors without meaning, since only the time counts: as long as those of a small model."""

    name, model, batch, least = "noise", "noise-1", 512, -1.0

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        return [octet - 128 for octet in hashlib.shake_128(text.encode()).digest(DIMENSIONS)]


async def time_searches(
    bench: Bench, passages: int, aim: TimeTarget, *, words: bool = True
) -> AsyncIterator[BenchRow]:
    """Words alone, then with vectors."""
    corpus = Corpus()
    progress(f"writing {passages} passages")
    corpus.documents(bench.folder / "store" / "memory" / "documents", passages)
    questions = [corpus.question() if words else f"zq{number}x" for number in range(QUESTIONS)]
    if words:
        async with bench.store(sync=False) as store:
            yield await _row(store, f"search {passages} passages, words", questions, aim)
    async with (
        bench.store(sync=False, embedder=RandomEmbedder()) as store,
        anyio.create_task_group() as group,
    ):
        group.start_soon(store.run_maintenance)
        await _wait_for_vectors(store)
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            how = "words and vectors" if words else "vectors alone"
            yield await _row(store, f"search {passages} passages, {how}", questions, aim)


async def _wait_for_vectors(store: GitMemoryStore) -> None:
    """Wait until all vectors are made."""
    while (vectors := (await store.index_stats()).vectors) is not None and vectors.missing:
        progress(f"vectors: {vectors.missing} missing")
        await anyio.sleep(5)


async def _row(store: GitMemoryStore, what: str, questions: list[str], aim: TimeTarget) -> BenchRow:
    progress(f"{what}: indexing")
    await store.index_stats()
    await store.pack(now=True)
    seconds: list[float] = []
    for question in (*questions[:5], *questions):
        began = perf_counter()
        await store.search(SearchMemory(query=question))
        seconds.append(perf_counter() - began)
    return BenchRow(what, spread(seconds[5:]), str(aim), aim.is_met(seconds[5:]))
