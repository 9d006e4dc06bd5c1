"""An index of chunks for stores that have none: in main memory, compared with the files at each question. It has no
vectors."""

from typing import TypeVar

import anyio
import anyio.to_thread
import apsw

from trunkline import MemoryEntry
from trunkline.api.bus import Refusal
from trunkline.api.chunks import parse_chunk_path
from trunkline.api.store import MemoryStore
from trunkline_git_store.chunks.sqlite_index import IndexQuery, SqliteChunkIndex
from trunkline_git_store.index.chunk import chunk_passages
from trunkline_git_store.index.rows import forget, insert
from trunkline_git_store.index.schema import SCHEMA

T = TypeVar("T")


class InMemoryChunkIndex(SqliteChunkIndex):
    """Looks through a store's names and reads what changed since the last question."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self._store = store
        self._lock = anyio.Lock()
        self._limiter = anyio.CapacityLimiter(1)
        self._connection = apsw.Connection(":memory:")
        self._connection.execute(SCHEMA)
        self._chunks: dict[str, tuple[MemoryEntry, int, bytes]] = {}

    @property
    def vectors(self) -> None:
        """There are none."""
        return

    async def embed_query(self, text: str) -> None:
        """Words must do."""
        return

    async def query(self, question: IndexQuery[T]) -> T:
        """Ask, when everything that was committed is in."""
        async with self._lock:
            entries = await self._store.list("", recursive=True)
            there = {
                entry.path: entry
                for entry in entries
                if entry.kind == "file" and parse_chunk_path(entry.path)
            }
            for path in self._chunks.keys() - there.keys():
                forget(self._connection, self._chunks.pop(path)[1])
            for path, entry in there.items():
                if path not in self._chunks or self._chunks[path][0] != entry:
                    await self._take_in(entry)
            return await anyio.to_thread.run_sync(
                lambda: question(self._connection, self._contents), limiter=self._limiter
            )

    async def _take_in(self, entry: MemoryEntry) -> None:
        try:
            data = (await self._store.read(entry.path)).content.encode()
        except Refusal:
            data = b"\xff"  # no text: a broken chunk
        known = self._chunks.get(entry.path)
        if known is not None:
            forget(self._connection, known[1])
        self._connection.execute(
            "INSERT INTO files(path, blob, size, height) VALUES(?, ?, ?, 0)",
            (entry.path, entry.path, len(data)),
        )
        file = self._connection.last_insert_rowid()
        insert(self._connection, self._stems, file, chunk_passages(entry.path, data))
        self._chunks[entry.path] = (entry, file, data)

    def _contents(self, blob: str) -> bytes:
        return self._chunks[blob][2]
