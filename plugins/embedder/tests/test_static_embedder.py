"""The static embedder makes vectors of a text's topic, without the network."""

import math
import socket

import anyio
import pytest

from trunkline.contracts.memory.chunks import Recall, Remember
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.index import GetIndexStats
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import (
    MEMORY_INDEX_STATS,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_SEARCH,
    MEMORY_WRITE,
)
from trunkline.testing.platform import platform
from trunkline_embedder.static import StaticEmbedder

pytestmark = pytest.mark.anyio


def likeness(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_texts_of_similar_meaning_have_similar_vectors():
    """Texts about one thing lie nearer to each other than to one about another thing."""
    cat, kitten, market = await StaticEmbedder().embed(
        ["The cat sleeps on the sofa.", "A kitten naps on a couch!", "The stock market fell again."]
    )
    assert likeness(cat, kitten) > 2 * abs(likeness(cat, market))


async def test_vectors_have_the_length_one():
    """Vectors are of one length and as many numbers each; that of nothing is zero, never NaN."""
    word, empty, signs = await StaticEmbedder().embed(["tomato", "", "?!"])
    assert len(word) == len(empty) == 256
    assert math.isclose(likeness(word, word), 1.0, abs_tol=1e-5)
    assert set(empty) == set(signs) == {0.0}


async def test_signs_and_case_do_not_matter():
    """A name is the same name at the beginning of a sentence and with a genitive."""
    one, other = await StaticEmbedder().embed(["Caroline's garden!", "caroline garden"])
    assert likeness(one, other) > 0.999


async def test_the_embedder_uses_no_network(monkeypatch: pytest.MonkeyPatch):
    """The weights come from the package: no socket is opened (DEPLOY-4)."""

    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    embedder = StaticEmbedder()
    assert await embedder.embed(["tomato"])


async def test_memory_searches_by_meaning_once_the_embedder_is_enabled(tmp_path):
    """With the setting, a note and a chunk are found by questions that share no word with them, and say so."""
    async with platform(
        tmp_path / "home", workers=("memory",), config={"memory.embedder": "static"}
    ) as running:
        notes = {
            "pet.md": "The kitten naps on the couch.",
            "money.md": "Shares fell again on the stock exchange.",
        }
        for path, text in notes.items():
            await running.bus.call(MEMORY_WRITE, WriteMemory(path=path, content=text, actor="owner"))
        chunk = Remember(content="Our dog is called Rex", actor="owner", conversation_id="c")
        kept = await running.bus.call(MEMORY_REMEMBER, chunk)
        with anyio.fail_after(60):
            while (await running.bus.call(MEMORY_INDEX_STATS, GetIndexStats())).vectors.missing:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        found = await running.bus.call(MEMORY_SEARCH, SearchMemory(query="sleeping cats"))
        request = Recall(query="what pet do we have", actor="owner")
        recalled = await running.bus.call(MEMORY_RECALL, request)
    assert (recalled.source_chunks, list(recalled.chunks[0].why)) == (kept.chunk_ids, ["meaning"])
    assert recalled.vectors == 1.0
    assert found.hits[0].path == "pet.md"
    assert "meaning" in {why.signal for why in found.hits[0].why}
