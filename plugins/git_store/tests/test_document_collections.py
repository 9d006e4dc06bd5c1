"""Documents of a conversation: found by memory's own engine, bounded, repaired, and deleted for good by clear."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import apsw
import pytest

from trunkline_bus import Refusal
from trunkline_git_store.document_collections import collection, collection_store
from trunkline_git_store.document_collections.collection_store import CollectionStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def collections(tmp_path: Path) -> AsyncIterator[CollectionStore]:
    found = CollectionStore(tmp_path / "conversations")
    yield found
    await found.aclose()


def within(folder: Path) -> list[Path]:
    """Return the content of a folder."""
    return list(folder.iterdir())


async def test_mn_t14_a_rare_word_outscores_a_common_one(collections: CollectionStore) -> None:
    """BM25: of two documents that hold one word of the question each, that with the rarer word comes first; words that
    are nowhere find nothing, and so does an empty collection."""
    assert await collections.search("conv", "quetzal", 8) == ()
    for number in range(8):
        await collections.put("conv", f"{number}.txt", f"The garden has {number} beds and a fence.\n")
    await collections.put("conv", "bird.txt", "The quetzal has a nest of moss.\n")
    found = await collections.search("conv", "garden quetzal", 8)
    assert found[0].source == "bird.txt"
    assert found[0].score > found[1].score
    assert await collections.search("conv", "xylophone", 8) == ()


async def test_each_conversation_has_its_own(collections: CollectionStore) -> None:
    """For any name of a conversation, no other conversation sees its documents, and no path leaves the cache."""
    names = ["conv", "../conv", "a/b", "", "con\0v", "x" * 500, "ünï"]
    for number, name in enumerate(names):
        await collections.put(name, "same.md", f"number {number}")
    for number, name in enumerate(names):
        (one,) = await collections.search(name, "number", 8)
        assert one.text == f"number {number}"


@pytest.mark.parametrize(
    "name", ["../out.md", "/etc/passwd", "a/../../b", ".git/config", "nul\0", "", "a" * 3_000]
)
async def test_hostile_names_are_refused(collections: CollectionStore, name: str) -> None:
    """A document is called as a file of memory may be."""
    with pytest.raises(Refusal):
        await collections.put("conv", name, "text")
    assert await collections.documents("conv") == ()


async def test_a_document_is_replaced_by_its_name(collections: CollectionStore) -> None:
    """Its earlier text is no longer found."""
    await collections.put("conv", "a.md", "apples")
    await collections.put("conv", "a.md", "pears")
    assert [one.name for one in await collections.documents("conv")] == ["a.md"]
    assert await collections.search("conv", "apples", 8) == ()
    assert len(await collections.search("conv", "pears", 8)) == 1


async def test_there_is_a_bound(collections: CollectionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation cannot fill the disk; existing documents can still be replaced."""
    monkeypatch.setattr(collection, "MOST_BYTES", 100)
    await collections.put("conv", "a.md", "x" * 90)
    with pytest.raises(Refusal, match="Clear them"):
        await collections.put("conv", "b.md", "x" * 20)
    await collections.put("conv", "a.md", "y" * 95)


async def test_collections_survive_a_restart_and_are_emptied_by_clear(tmp_path: Path) -> None:
    """A new worker finds them; after a clear no byte of them is left in the folder."""
    first = CollectionStore(tmp_path)
    await first.put("conv", "a.md", "the quetzal")
    await first.search("conv", "quetzal", 8)
    await first.aclose()
    second = CollectionStore(tmp_path)
    assert len(await second.search("conv", "quetzal", 8)) == 1
    assert await second.clear("conv") == 1
    assert within(tmp_path) == []
    assert await second.clear("conv") == 0
    assert await second.documents("conv") == ()


@pytest.mark.parametrize("harm", ["head", "objects", "index"])
async def test_a_damaged_collection_starts_empty(tmp_path: Path, harm: str) -> None:
    """A cache that a crash left in pieces is an empty one; an index alone is made again from the texts."""
    first = CollectionStore(tmp_path)
    await first.put("conv", "a.md", "the quetzal")
    await first.search("conv", "quetzal", 8)
    await first.aclose()
    (place,) = within(tmp_path)
    if harm == "head":
        (place / ".git/refs/heads/main").write_text("")
    elif harm == "objects":
        for file in (place / ".git/objects").rglob("*"):
            if file.is_file():
                file.chmod(0o600)
                file.write_bytes(b"")
    else:
        (place / "index.db").write_bytes(b"damaged" * 1_000)
    second = CollectionStore(tmp_path)
    assert len(await second.search("conv", "quetzal", 8)) == int(harm == "index")
    await second.put("conv", "b.md", "another quetzal")
    assert "b.md" in {one.source for one in await second.search("conv", "quetzal", 8)}
    await second.aclose()


async def test_a_hit_includes_its_surrounding_text(collections: CollectionStore) -> None:
    """Enough to answer from: the section with its heading, not the whole document and not the next page."""
    birds = "# Birds\n\nThe quetzal nests in moss.\nIt is green."
    await collections.put("conv", "a.md", f"# Trees\n\nAn oak.\n\n{birds}\n\n<!-- page 2 -->\n\nNext page.\n")
    (one,) = await collections.search("conv", "quetzal", 8)
    assert one.text == birds
    assert one.citation == "a.md, line 7"


@pytest.mark.parametrize(
    "error",
    [Refusal("not_found", "history cannot be read"), apsw.BusyError("locked"), OSError(5, "disk")],
    ids=["refusal", "database", "disk"],
)
async def test_cleanup_survives_a_conversation_that_cannot_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The other conversations are cleaned up; the conversation itself is checked again in the next round."""
    monkeypatch.setattr(collection_store, "CLEANUP_INTERVAL", 0.02)
    collections = CollectionStore(tmp_path)
    for conversation in ("conv_1", "conv_2", "conv_3"):
        await collections.put(conversation, "a.md", "text")
    for folder in within(tmp_path):
        os.utime(folder / "conversation", (0, 0))
    broken = {"conv_2"}

    async def exists(conversation: str) -> bool:
        if conversation in broken:
            raise error
        return False

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collections.run_cleanup, exists, float("inf"))
        with anyio.fail_after(30):
            while len(within(tmp_path)) > 1:  # noqa: ASYNC110  a folder has no event
                await anyio.sleep(0.02)
            broken.clear()
            while within(tmp_path):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()
    await collections.aclose()
