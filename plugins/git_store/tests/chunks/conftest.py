"""Shared by the tests of chunks: reader and writer on a real store, with a clock that can be set."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.memory.chunk import Chunk
from trunkline.contracts.memory.chunks import (
    DeleteChunk,
    FindLinked,
    ForgetChunk,
    GetChunk,
    LinkChunks,
    LinkedChunk,
    ListChunks,
    Recall,
    RecallResult,
    Remember,
    RestoreChunk,
)
from trunkline.contracts.memory.store import Change, ChunkType, LinkType, StoreContext
from trunkline.workers.memory.change_rules import RedactionRule
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.chunk_types import TypeRegistry
from trunkline.workers.memory.chunks.reader import ChunkReader
from trunkline.workers.memory.chunks.writer import ChunkWriter
from trunkline_bus import Scope
from trunkline_git_store.store import GitMemoryStore


class Chunks:
    """The chunks of a store, as an actor in a block has them. ``time`` is the clock."""

    def __init__(self, store: GitMemoryStore, start: datetime | None = None) -> None:
        self.time = start or datetime(2026, 5, 4, 12, tzinfo=UTC)
        self.store = store
        redaction = RedactionRule(Redactor())
        store._components.committer.rules = (redaction,)
        policies = BlockPolicies(store, "main")
        kinds = TypeRegistry(
            [ChunkType("api_endpoint", "", ("method", "path"), ("auth",))], [LinkType("depends_on")]
        )
        self.reader = ChunkReader(store.chunk_index(store), policies, lambda: self.time)
        self.writer = ChunkWriter(store, self.reader, policies, kinds, redaction.redact, lambda: self.time)

    def later(self, **more: float) -> None:
        """Let time pass."""
        self.time += timedelta(**more)

    async def keep(self, content: str, *, actor: str = "agent", conversation: str = "c1", **more: Any) -> str:
        """Remember one chunk; returns its id."""
        request = Remember(
            content=content, actor=actor, conversation_id=conversation, **{"block": "main", **more}
        )
        (chunk,) = (await self.writer.remember(request, Scope())).chunk_ids
        return chunk

    async def recall(self, query: str, *, actor: str = "agent", **more: Any) -> RecallResult:
        """Recall."""
        return await self.reader.recall(Recall(query=query, actor=actor, **{"block": "main", **more}))

    async def get(self, chunk: str, *, actor: str = "agent", **more: Any) -> Chunk | None:
        """One chunk."""
        return (await self.reader.get(GetChunk(id=chunk, actor=actor, **{"block": "main", **more}))).chunk

    async def ids(self, *, actor: str = "agent", **more: Any) -> list[str]:
        """The ids of those that match, newest first."""
        page = await self.reader.page(ListChunks(actor=actor, **{"block": "main", **more}))
        return [chunk.id for chunk in page.chunks]

    async def links(self, chunk: str, kind: str | None = None, *, actor: str = "agent") -> list[LinkedChunk]:
        """The links of a chunk."""
        request = FindLinked(id=chunk, actor=actor, block="main", link_type=kind)
        return list((await self.reader.linked(request)).links)

    async def link(self, source: str, target: str, kind: str, **more: Any) -> None:
        """Link two by hand."""
        request = LinkChunks(
            source_id=source, target_id=target, link_type=kind, actor="agent", block="main", **more
        )
        await self.writer.link(request, Scope())

    async def delete(self, chunk: str, *, actor: str = "agent") -> None:
        """Put one into the archive."""
        await self.writer.delete(DeleteChunk(id=chunk, actor=actor, block="main"), Scope())

    async def restore(self, chunk: str, *, actor: str = "agent") -> None:
        """Bring one back."""
        await self.writer.restore(RestoreChunk(id=chunk, actor=actor, block="main"), Scope())

    async def forget(self, chunk: str, *, actor: str = "agent") -> None:
        """Take one out."""
        await self.writer.forget(ForgetChunk(id=chunk, actor=actor, block="main"), Scope())


async def chunks_in(store: GitMemoryStore) -> Chunks:
    """Chunks on a store that is open, in a block that is there."""
    await store.change(Change({"blocks/main/block.toml": b""}, actor="owner", reason="create block main"))
    return Chunks(store)


@asynccontextmanager
async def chunks_at(base: Path) -> AsyncIterator[Chunks]:
    """Chunks on a store of its own."""
    store = GitMemoryStore()
    await store.open(StoreContext(base / "memory", base / "cache"))
    try:
        yield await chunks_in(store)
    finally:
        await store.aclose()


@pytest.fixture
async def chunks(tmp_path: Path) -> AsyncIterator[Chunks]:
    async with chunks_at(tmp_path) as found:
        yield found
