"""Search by meaning: vectors are made in the background, stored by text, and never required."""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import apsw
import pytest

from tests.support.tiny_embedder import TinyEmbedder
from trunkline.contracts.memory.embedder import Embedder, Vector
from trunkline.contracts.memory.search import MemoryHit, SearchMemory
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio

MEANS = {"automobile": "vehicle", "car": "vehicle", "cars": "vehicle", "lorry": "vehicle"}


@asynccontextmanager
async def maintained(base: Path, embedder: Embedder | None) -> AsyncIterator[GitMemoryStore]:
    """A store with an embedder that is looked after."""
    store = GitMemoryStore()
    await store.open(StoreContext(base / "memory", base / "cache", embedder=embedder))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(store.run_maintenance)
            yield store
            group.cancel_scope.cancel()
    finally:
        await store.aclose()


async def write(store: GitMemoryStore, **files: str) -> None:
    """Write files, named by words."""
    texts: dict[str, bytes | None] = {f"{name}.md": text.encode() for name, text in files.items()}
    await store.change(Change(texts, actor="agent", reason=""))


async def complete(store: GitMemoryStore) -> None:
    """Wait until every passage has its vector; a passage with an invalid vector is embedded again after a minute."""
    with anyio.fail_after(150):
        while not await is_complete(store):  # noqa: ASYNC110  it is asked of a store, which has no event for it
            await anyio.sleep(0.05)


async def is_complete(store: GitMemoryStore) -> bool:
    """Report whether every passage has its vector."""
    vectors = (await store.index_stats()).vectors
    return vectors is not None and vectors.ready > 0 and not vectors.missing


def vectors_in(base: Path) -> int:
    """Return the number of vectors on disk."""
    with apsw.Connection(str(base / "cache/memory-vectors.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM known").get)


async def find(store: GitMemoryStore, query: str) -> tuple[MemoryHit, ...]:
    """Search."""
    return await store.search(SearchMemory(query=query))


async def paths(store: GitMemoryStore, query: str) -> list[str]:
    """The paths found, best first."""
    return [hit.path for hit in await find(store, query)]


async def test_a_paraphrased_query_finds_the_text(tmp_path: Path) -> None:
    """The query has no word in common, and is found by the vector alone; the hit reports this."""
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        await write(store, garage="The automobile stands outside.", kitchen="Soup with leeks.")
        await complete(store)
        hit = (await find(store, "lorry"))[0]
        assert hit.path == "garage.md"
        assert [why.signal for why in hit.why] == ["meaning"]
        assert store.vectors == 1.0


async def test_words_and_meaning_add_up(tmp_path: Path) -> None:
    """FS-6: what words find is still found, and first where meaning agrees."""
    async with maintained(tmp_path, None) as store:
        await write(store, one="The car is red.", two="A lorry is a car, and red.", other="Green soup.")
        plain = await paths(store, "red car")
        assert set(plain) == {"one.md", "two.md"}
        assert store.vectors is None
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        await complete(store)
        assert set((await paths(store, "red car"))[:2]) == set(plain)
        assert {"words", "meaning"} <= {why.signal for why in (await find(store, "red car"))[0].why}
    async with maintained(tmp_path, None) as store:
        assert await paths(store, "red car") == plain


async def test_a_write_does_not_wait_for_its_vector(tmp_path: Path) -> None:
    """While the embedder fails writes are acknowledged and found by words; when it is back the vectors follow."""
    embedder = TinyEmbedder(MEANS)
    embedder.fault = ConnectionError("out of reach")
    async with maintained(tmp_path, embedder) as store:
        await write(store, garage="The automobile stands outside.")
        assert await paths(store, "automobile") == ["garage.md"]
        assert await paths(store, "lorry") == []
        vectors = (await store.index_stats()).vectors
        assert vectors is not None and vectors.missing > 0 and "out of reach" in vectors.fault
        embedder.fault = None
        await complete(store)
        assert await paths(store, "lorry") == ["garage.md"]


async def test_an_unreadable_history_delays_the_vectors(
    tmp_path: Path, git: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    """The store is still tended while the index cannot be built, and the vectors follow without another change."""
    async with maintained(tmp_path, None) as store:
        await write(store, garage="The automobile stands outside.")
    for file in (tmp_path / "cache").glob("memory.db*"):
        file.unlink()
    oid = git("rev-parse", "HEAD:garage.md").strip()
    blob = tmp_path / "memory/.git/objects" / oid[:2] / oid[2:]
    blob.rename(tmp_path / "lost")
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        with anyio.fail_after(60):
            while "the vectors are behind" not in caplog.text:  # noqa: ASYNC110  a log has no event
                await anyio.sleep(0.05)
        (tmp_path / "lost").rename(blob)
        await complete(store)
        assert await paths(store, "lorry") == ["garage.md"]


async def test_vectors_survive_the_loss_of_the_index(tmp_path: Path) -> None:
    """A lost index is rebuilt, and no text is embedded a second time; only a new text is."""
    embedder = TinyEmbedder(MEANS)
    async with maintained(tmp_path, embedder) as store:
        await write(store, garage="The automobile stands outside.")
        await complete(store)
    for file in (tmp_path / "cache").glob("memory.db*"):
        file.unlink()
    again = TinyEmbedder(MEANS)
    async with maintained(tmp_path, again) as store:
        await complete(store)
        assert again.asked == []
        await write(store, shed="A bicycle.")
        await complete(store)
        assert again.asked == ["A bicycle."]


async def test_another_model_recomputes_the_vectors(tmp_path: Path) -> None:
    """Vectors of two models do not mix, even with the same length."""
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        await write(store, garage="The automobile stands outside.")
        await complete(store)
    other = TinyEmbedder({}, model="tiny-2", dimensions=20)
    async with maintained(tmp_path, other) as store:
        await complete(store)
        assert "The automobile stands outside." in other.asked
        assert await paths(store, "lorry") == []
        assert await paths(store, "automobile") == ["garage.md"]


@pytest.mark.parametrize("harm", ["delete", "garbage", "truncate"])
async def test_missing_vectors_are_recomputed(tmp_path: Path, harm: str) -> None:
    """FS-6: deleting or damaging them loses nothing."""
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        await write(store, garage="The automobile stands outside.")
        await complete(store)
        before = await find(store, "lorry")
    for file in (tmp_path / "cache").glob("memory-vectors.db*"):
        if harm == "delete" or "-" in file.suffix:
            file.unlink()
        else:
            file.write_bytes(b"garbage" * 9_000 if harm == "garbage" else file.read_bytes()[:5_000])
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        await complete(store)
        assert await find(store, "lorry") == before


async def test_vectors_of_removed_texts_are_deleted(tmp_path: Path) -> None:
    """A deleted text is deleted from the vectors too, at the latest at their next cleanup."""
    async with maintained(tmp_path, TinyEmbedder(MEANS)) as store:
        await write(store, garage="The automobile stands outside.")
        await complete(store)
        before = vectors_in(tmp_path)
        await store.delete("garage.md", actor="owner", reason="")
        with anyio.fail_after(60):
            while vectors_in(tmp_path) != before - 1:  # noqa: ASYNC110  another thread tidies
                await anyio.sleep(0.05)


class Given(Embedder):
    """Has the vectors it is given for texts."""

    name, model, least = "given", "given-1", 0.0

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors

    async def embed(self, texts: list[str]) -> list[Vector]:  # type: ignore[override]
        return [self._vectors.get(text, [0.0, 0.0, 0.0]) for text in texts]


async def test_cc_t15_the_nearest_fact_ranks_first(tmp_path: Path) -> None:
    """CC-T15: [1,0,0] before [0,1,0] for [.9,.1,0]; a vector of zeros is no trouble, as a passage or as a question."""
    given = Given({"east": [1, 0, 0], "north": [0, 1, 0], "nearly east": [0.9, 0.1, 0], "nowhere": [0, 0, 0]})
    async with maintained(tmp_path, given) as store:
        await write(store, a="north", b="east", c="nowhere")
        await complete(store)
        hits = [hit for hit in await find(store, "nearly east") if hit.path in ("a.md", "b.md", "c.md")]
        assert hits[0].path == "b.md"
        assert all(hit.score == hit.score for hit in hits)
        assert await paths(store, "nowhere") == ["c.md"]


class InvalidEmbedder(TinyEmbedder):
    """An embedder that returns the vectors that it is given, valid or not."""

    vector: Vector | None = None

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the invalid vector for each text, or a correct one when none is given."""
        return await super().embed(texts) if self.vector is None else [self.vector] * len(texts)


@pytest.mark.parametrize(
    "vector", [(), (1.0,), (0.5,) * 33, (math.nan,) * 16, (math.inf,) * 16, (0.1,) * 20_000]
)
async def test_invalid_vectors_of_an_embedder_are_ignored(tmp_path: Path, vector: Vector) -> None:
    """Vectors have the wrong length, no length, or values that are not numbers: search by words still works, memory
    continues, and later vectors are valid."""
    for at_first in (True, False):
        base = tmp_path / str(at_first)
        base.mkdir()
        embedder = InvalidEmbedder(MEANS)
        async with maintained(base, embedder) as store:
            embedder.vector = vector if at_first else None
            await write(store, garage="The automobile stands outside.")
            if not at_first:
                await complete(store)
            embedder.vector = vector
            await write(store, shed="A lorry in the shed.")
            await anyio.sleep(0.3)
            assert "garage.md" in await paths(store, "automobile")
            assert "shed.md" in await paths(store, "shed")
            embedder.vector = None
            await write(store, barn="Barn: car.")
            assert "barn.md" in await paths(store, "barn")
            if not at_first:
                await complete(store)
                assert "barn.md" in await paths(store, "lorry")


class PartlyInvalidEmbedder(TinyEmbedder):
    """An embedder that returns an invalid vector for some texts, or an error for their whole batch."""

    def __init__(self, word: str, strange: Vector | Exception) -> None:
        super().__init__(MEANS)
        self._word = word
        self._strange = strange

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the invalid vector for texts with its word, and correct ones for the others."""
        here = [self._word in text for text in texts]
        if any(here) and isinstance(self._strange, Exception):
            raise self._strange
        plain = await super().embed(texts)
        return [self._strange if odd else vector for odd, vector in zip(here, plain, strict=True)]  # type: ignore[misc]


STRANGE = [(0.0,) * 64, (math.nan,) * 64, (math.inf,) * 64, (1e200,) * 64, (), (1.0,) * 7]
NAMES = ["zeros", "nan", "infinite", "overflow", "empty", "short", "no numbers", "refused", "wrong type"]
REFUSED = [ValueError("no such token"), TypeError("empty")]


@pytest.mark.parametrize("strange", [*STRANGE, (None,) * 64, *REFUSED], ids=NAMES)
async def test_a_text_without_a_vector_is_found_by_its_words(
    tmp_path: Path, strange: Vector | Exception
) -> None:
    """The other texts have their vectors, every search answers, filtered or not, and so does recall."""
    embedder = PartlyInvalidEmbedder("odd", strange)
    async with maintained(tmp_path, embedder) as store:
        await write(store, garage="The automobile stands outside.")
        await complete(store)  # the first vector of a store decides the length of all
        await write(store, odd="odd leeks", empty="", blank=" \n")
        await write(store, barn="The car stands.")
        await complete(store)
        for query in ("lorry", "leeks", "---", "\N{THUMBS UP SIGN}", "odd"):
            for narrowed in ({}, {"kinds": ("file",)}, {"path": ""}, {"min_confidence": 0.1}):
                await store.search(SearchMemory(query=query, **narrowed))  # type: ignore[arg-type]
        found = await store.search(SearchMemory(query="lorry", kinds=("file",)))
        assert {hit.path for hit in found} == {"garage.md", "barn.md"}
        found = await store.search(SearchMemory(query="leeks", kinds=("file",)))
        assert [hit.path for hit in found] == ["odd.md"]


class FailingEmbedder(TinyEmbedder):
    """An embedder that fails for certain texts as often as it is told, and notes what it embedded."""

    def __init__(self, **failures: int) -> None:
        super().__init__(MEANS)
        self.failures = failures
        self.billed: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        for word, left in self.failures.items():
            if left and any(word in text for text in texts):
                self.failures[word] -= 1
                raise TimeoutError("no answer")
        self.billed += texts
        return await super().embed(texts)


async def test_vectors_are_bought_once(tmp_path: Path) -> None:
    """The length of vectors is asked for after the first batch. If that fails, as when a budget is used up by then,
    the batch is kept and not embedded again."""
    embedder = FailingEmbedder(word=3)
    async with maintained(tmp_path, embedder) as store:
        await write(store, garage="The automobile stands outside.", shed="A lorry in the shed.")
        await complete(store)
        assert "garage.md" in await paths(store, "lorry")
    bought = [text for text in embedder.billed if "automobile" in text or "shed" in text]
    assert sorted(bought) == sorted(set(bought))


async def test_a_text_that_fails_once_has_its_vector(tmp_path: Path) -> None:
    """An outage of a moment is no refusal of the text: while the embedder answers others, it is asked once more."""
    embedder = FailingEmbedder(automobile=1)
    async with maintained(tmp_path, embedder) as store:
        await write(store, shed="Leeks.")
        await complete(store)
        await write(store, garage="The automobile stands outside.")
        await complete(store)
        assert "garage.md" in await paths(store, "lorry")


@pytest.mark.parametrize("strange", [(1.0,) * 7, (0.5,) * 128])
async def test_a_wrong_first_vector_blocks_no_later_one(
    tmp_path: Path, strange: Vector, caplog: pytest.LogCaptureFixture
) -> None:
    """The length of vectors is that of a common word. A text whose first vector has another one has none, which the log
    says once, and every other text is found by its meaning, now and by the next process."""
    embedder = PartlyInvalidEmbedder("odd", strange)
    async with maintained(tmp_path, embedder) as store:
        await write(store, odd="odd leeks")
        await complete(store)
        await write(store, garage="The automobile stands outside.")
        await complete(store)
        assert await paths(store, "lorry") == ["garage.md"] and await paths(store, "leeks") == ["odd.md"]
        stats = (await store.index_stats()).vectors
        assert stats is not None and not stats.fault
    refused = [record for record in caplog.records if "another length" in record.getMessage()]
    assert len(refused) == 1 and "tiny" in refused[0].getMessage()
    async with maintained(tmp_path, embedder) as store:
        await write(store, barn="The car stands.")
        await complete(store)
        assert set(await paths(store, "lorry")) == {"garage.md", "barn.md"}
