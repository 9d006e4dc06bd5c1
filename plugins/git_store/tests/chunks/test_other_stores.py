"""Chunks in a store that has no index: the same answers, from the files (``InMemoryChunkIndex``)."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from trunkline.contracts.memory.chunks import DeleteChunk, ForgetChunk, ListChunks, Recall, Remember
from trunkline.contracts.memory.purge import PurgeMemory
from trunkline.contracts.memory.store import Change, StoreContext
from trunkline.workers.memory.change_rules import PurgedTurnRule
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.chunk_types import TypeRegistry
from trunkline.workers.memory.chunks.reader import ChunkReader
from trunkline.workers.memory.chunks.writer import ChunkWriter
from trunkline.workers.memory.purge.service import PurgeService
from trunkline_bus import Refusal, Scope
from trunkline_git_store.chunks.git_index import GitChunkIndex
from trunkline_git_store.chunks.in_memory_index import InMemoryChunkIndex
from trunkline_git_store.store import GitMemoryStore
from trunkline_onefile.records import MemoryRecord
from trunkline_onefile.store import RecordStore

pytestmark = pytest.mark.anyio


class ListStore(RecordStore):
    """Keeps its records in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[MemoryRecord] = []

    def load(self, root: Path) -> list[MemoryRecord]:
        return self.records

    def keep(self, record: MemoryRecord) -> None:
        self.records.append(record)


async def test_chunks_live_in_any_store(tmp_path: Path) -> None:
    """Remember, recall, archive and forget work; only a purge needs a store that can rewrite its history."""
    store = ListStore()
    await store.open(StoreContext(tmp_path / "memory", tmp_path / "cache"))
    await store.change(Change({"blocks/main/block.toml": b""}, actor="owner", reason="create block main"))
    policies = BlockPolicies(store, "main")
    reader = ChunkReader(
        GitMemoryStore().chunk_index(store), policies, lambda: datetime(2026, 5, 4, tzinfo=UTC)
    )
    writer = ChunkWriter(
        store, reader, policies, TypeRegistry(), str, lambda: datetime(2026, 5, 4, tzinfo=UTC)
    )

    async def keep(text: str) -> str:
        request = Remember(content=text, actor="ada", conversation_id="c", block="main", tags=("t",))
        return (await writer.remember(request, Scope())).chunk_ids[0]

    async def recalled(query: str) -> tuple[str, ...]:
        return (await reader.recall(Recall(query=query, actor="ada", block="main"))).source_chunks

    red, green = await keep("red apples"), await keep("green apples")
    assert set(await recalled("aples")) == {red, green}
    await writer.delete(DeleteChunk(id=red, actor="ada", block="main"), Scope())
    assert await recalled("apples") == (green,)
    page = await reader.page(ListChunks(actor="ada", block="main", tags=("T",), archived=True))
    assert [chunk.id for chunk in page.chunks] == [red]
    await writer.forget(ForgetChunk(id=green, actor="ada", block="main"), Scope())
    assert await recalled("apples") == ()
    request = PurgeMemory(target=red, confirm=red, actor="owner")
    with pytest.raises(Refusal, match="cannot rewrite its history"):
        await PurgeService(store, (), None, PurgedTurnRule()).purge(request, Scope())
    await store.aclose()


async def test_a_store_with_an_index_of_its_own_is_asked() -> None:
    """The git store looks up its own chunks, also before it is open; for another one it makes an index."""
    kept = GitMemoryStore()
    assert isinstance(kept.chunk_index(kept), GitChunkIndex)
    assert isinstance(kept.chunk_index(ListStore()), InMemoryChunkIndex)
    assert isinstance(kept.chunk_index(GitMemoryStore()), InMemoryChunkIndex)
