"""An index of chunks in SQLite, in the form of ``index/schema.py``: each question is asked with one connection."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import apsw
import msgspec

from trunkline.api.chunks import (
    ChunkCounts,
    ChunkIndex,
    ChunkLocation,
    ChunkPage,
    ChunksLinked,
    ChunkVisibility,
    LayerLocation,
)
from trunkline.api.memory import Chunk, FindLinked, ListChunks, Recall, RecallResult
from trunkline_git_store.chunks.links import linked_chunks
from trunkline_git_store.chunks.queries import (
    BlobReader,
    all_locations,
    count_chunks,
    find_chunk,
    list_page,
    load_chunks,
    note_use,
    stale_chunks,
)
from trunkline_git_store.chunks.recall import recall
from trunkline_git_store.search.semantic import QueryVector
from trunkline_git_store.stemmer import TextStemmer

T = TypeVar("T")

IndexQuery = Callable[[apsw.Connection, BlobReader], T]


class SqliteChunkIndex(ChunkIndex):
    """Asks the questions. A subclass says how a question reaches the database, one at a time."""

    def __init__(self) -> None:
        self._stems = TextStemmer()  # used where the index is asked, one question at a time

    @abstractmethod
    async def query(self, question: IndexQuery[T]) -> T:
        """Ask the database, once it has everything that was committed before."""

    @abstractmethod
    async def embed_query(self, text: str) -> QueryVector | None:
        """Return what is looked for as a vector; None where words must do."""

    async def get(self, visible: ChunkVisibility, chunk: str, *, archived: bool = False) -> Chunk | None:
        """See ``ChunkIndex.get``."""

        def question(connection: apsw.Connection, contents: BlobReader) -> Chunk | None:
            row = find_chunk(connection, visible, chunk)
            if row is None and archived:
                row = find_chunk(connection, visible, chunk, archived=True)
            if row is None:
                return None
            note_use(connection, (row.id,), visible.now)
            return next(load_chunks(connection, contents, (row,)), None)

        return await self.query(question)

    async def page(self, visible: ChunkVisibility, request: ListChunks) -> ChunkPage:
        """See ``ChunkIndex.page``."""
        return await self.query(
            lambda connection, contents: list_page(connection, contents, visible, request)
        )

    async def linked(self, visible: ChunkVisibility, request: FindLinked) -> ChunksLinked | None:
        """See ``ChunkIndex.linked``."""
        return await self.query(
            lambda connection, contents: linked_chunks(connection, contents, visible, request)
        )

    async def recall(self, visible: ChunkVisibility, request: Recall) -> RecallResult:
        """See ``ChunkIndex.recall``."""
        meaning = await self.embed_query(request.query)
        found = await self.query(
            lambda connection, contents: recall(connection, contents, self._stems, visible, request, meaning)
        )
        return msgspec.structs.replace(found, vectors=self.vectors)

    async def count(self, folders: Sequence[str] | None) -> ChunkCounts:
        """See ``ChunkIndex.count``."""
        return await self.query(lambda connection, _: count_chunks(connection, folders))

    async def locate(
        self, visible: ChunkVisibility, chunk: str, *, archived: bool = False
    ) -> ChunkLocation | None:
        """See ``ChunkIndex.locate``."""
        return await self.query(
            lambda connection, _: find_chunk(connection, visible, chunk, archived=archived)
        )

    async def stale(self, folder: str, now: datetime, days: int | None) -> Sequence[ChunkLocation]:
        """See ``ChunkIndex.stale``."""
        return await self.query(lambda connection, _: stale_chunks(connection, folder, now, days))

    async def layers(self) -> Sequence[LayerLocation]:
        """See ``ChunkIndex.layers``."""
        return await self.query(lambda connection, _: all_locations(connection))
