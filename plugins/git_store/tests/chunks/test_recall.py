"""Recall by more than the exact words: forms of words, meaning, and times; each hit names its reason (RLM-F10)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.tiny_embedder import TinyEmbedder
from trunkline.contracts.memory.chunks import RecallResult
from trunkline.contracts.memory.store import StoreContext
from trunkline_git_store.store import GitMemoryStore

from ..test_semantic_search import complete
from . import test_chunks as plain
from .conftest import Chunks, chunks_in

pytestmark = pytest.mark.anyio

MEANS = {"lorry": "vehicle", "truck": "vehicle"}


class WithVectors(Chunks):
    """Chunks of a store with an embedder; who recalls waits until every chunk has its vector."""

    async def recall(self, query: str, *, actor: str = "agent", **more: Any) -> RecallResult:
        """Recall."""
        if await self.ids(actor="owner", block=None):
            await complete(self.store)
        return await super().recall(query, actor=actor, **more)


@asynccontextmanager
async def embedding(base: Path, embedder: TinyEmbedder) -> AsyncIterator[WithVectors]:
    """Run chunks with an embedder."""
    store = GitMemoryStore()
    await store.open(StoreContext(base / "memory", base / "cache", embedder=embedder))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(store.run_maintenance)
            await chunks_in(store)
            yield WithVectors(store)
            group.cancel_scope.cancel()
    finally:
        await store.aclose()


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("He runs every morning", "running"),
        ("Anna was running late", "run"),
        ("She loves databases", "loving"),
        ("We decided on the big houses", "house"),
        ("Die Kinder gehen in die Schule und spielen mit den Hunden", "Hund"),
    ],
)
async def test_every_inflection_of_a_word_is_found(chunks: Chunks, kept: str, asked: str) -> None:
    """A word is found by its stem, by the rules of the text's own language, and counts as the word itself."""
    chunk = await chunks.keep(kept)
    await chunks.keep("Soup with leeks")
    (found,) = (await chunks.recall(asked)).chunks
    assert (found.chunk.id, list(found.why)) == (chunk, ["words"])


async def test_a_chunk_of_similar_meaning_is_found_by_its_vector(tmp_path: Path) -> None:
    """With an embedder "lorry" finds "truck", says that it is by meaning, and is as sure as they are alike."""
    async with embedding(tmp_path, TinyEmbedder(MEANS)) as chunks:
        wanted = await chunks.keep("The truck stands outside")
        await chunks.keep("Soup with leeks")
        found = await chunks.recall("the lorry stands outside")
        assert next(iter(found.source_chunks)) == wanted
        assert {"words", "meaning"} <= found.chunks[0].why.keys()
        (alone,) = (await chunks.recall("lorry")).chunks
        assert (alone.chunk.id, list(alone.why)) == (wanted, ["meaning"])
        assert 0 < (await chunks.recall("lorry")).confidence < 0.7
        assert found.vectors == 1.0


async def test_without_an_embedder_recall_uses_words_and_reports_it(chunks: Chunks) -> None:
    """No chunk is found by meaning, and the answer states that only words were searched."""
    await chunks.keep("The truck stands outside")
    found = await chunks.recall("lorry")
    assert (found.source_chunks, found.vectors) == ((), None)
    assert "Words alone" in found.searched


async def test_a_failing_embedder_leaves_recall_by_words(tmp_path: Path) -> None:
    """A chunk is recalled by its words while the embedder is unreachable, and the answer reports this."""
    embedder = TinyEmbedder(MEANS)
    async with embedding(tmp_path, embedder) as chunks:
        chunk = await chunks.keep("The truck stands outside")
        await complete(chunks.store)
        embedder.fault = ConnectionError("out of reach")
        found = await Chunks.recall(chunks, "truck")
        assert (found.source_chunks, found.vectors) == ((chunk,), 0.0)
        assert "Words alone" in found.searched
        embedder.fault = None
        assert (await chunks.recall("lorry")).vectors == 1.0


async def test_semantic_search_respects_visibility(tmp_path: Path) -> None:
    """A chunk that is private to another actor, archived, of another conversation or below the confidence limit is
    not found by meaning either."""
    async with embedding(tmp_path, TinyEmbedder(MEANS)) as chunks:
        await chunks.keep("A truck", actor="bob", layer="project_agent")
        await chunks.delete(await chunks.keep("A truck"))
        await chunks.keep("A truck", conversation="c2")
        await chunks.keep("A truck", confidence=0.3)
        mine = await chunks.keep("A truck", tags=("t",))
        assert (await chunks.recall("lorry", conversation_id="c1")).source_chunks == (mine,)
        assert (await chunks.recall("lorry", tags=("t",))).source_chunks == (mine,)


@pytest.mark.parametrize(
    "case",
    [
        plain.test_rlm_t5_tags_outrank_words_and_more_matches_outrank_fewer,
        plain.test_rlm_t5_higher_confidence_first_then_newer,
        plain.test_rlm_t6_misspelt_words_find,
        plain.test_rlm_t6_nonsense_finds_nothing_and_limits_hold,
    ],
)
async def test_rlm_t5_t6_hold_with_vectors_too(
    tmp_path: Path, case: Callable[[Chunks], Awaitable[None]]
) -> None:
    """RLM-T5, T6: meaning is one signal more and turns none of the required orders around."""
    async with embedding(tmp_path, TinyEmbedder({})) as chunks:
        await case(chunks)


async def test_chunks_of_the_named_time_come_first(chunks: Chunks) -> None:
    """ "Yesterday" and similar words raise the chunks of that time; the score is the sum of its signals times its
    factors."""
    older = await chunks.keep("We decided to use apples")
    chunks.later(days=2)
    wanted = await chunks.keep("We decided to use apples")
    chunks.later(days=1)
    newer = await chunks.keep("We decided to use apples")
    found = await chunks.recall("what did we decide about apples yesterday")
    assert set(found.source_chunks) == {older, wanted, newer}
    best = found.chunks[0]
    assert (best.chunk.id, best.factors["date"]) == (wanted, 1.6)
    assert "date" not in found.chunks[1].factors
    for one in found.chunks:
        product = sum(one.why.values())
        for factor in one.factors.values():
            product *= factor
        assert one.score == pytest.approx(product)
