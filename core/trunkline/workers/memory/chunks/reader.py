"""Who answers questions about chunks: puts what an asker may see before the index. Changes no file."""

from collections.abc import Callable
from datetime import UTC, datetime

import apsw
import msgspec

from trunkline._util.nlp.stemmer import TextStemmer
from trunkline.contracts.memory.chunks import (
    Chunk,
    ChunkCounts,
    ChunkFound,
    ChunkPage,
    ChunksLinked,
    CountChunks,
    FindLinked,
    GetChunk,
    ListChunks,
    Recall,
    Recalled,
)
from trunkline.contracts.memory.paths import OWNER
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.chunk_file import is_chunk_id
from trunkline.workers.memory.chunks.chunk_index import ChunkIndex
from trunkline.workers.memory.chunks.layers import LAYERS, layer_location, readable_layers
from trunkline.workers.memory.chunks.links import linked_chunks
from trunkline.workers.memory.chunks.queries import (
    BlobReader,
    ChunkVisibility,
    IndexedChunk,
    all_locations,
    chunk_paths,
    count_chunks,
    find_chunk,
    list_page,
    load_chunks,
    note_use,
    stale_chunks,
)
from trunkline.workers.memory.chunks.recall import recall
from trunkline_bus import Refusal


class ChunkReader:
    """Answers for one memory. ``now`` tells the time."""

    def __init__(
        self,
        source: ChunkIndex,
        policies: BlockPolicies,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._source = source
        self._ask = source.query
        self._policies = policies
        self._now = now
        self._stems = TextStemmer()  # used where the index is asked, one question at a time

    async def get(self, wish: GetChunk) -> ChunkFound:
        """One chunk, which counts as an access."""
        sight, now = await self._sight(wish.block, wish.actor), self._now()

        def question(connection: apsw.Connection, contents: BlobReader) -> Chunk | None:
            row = find_chunk(connection, sight, wish.id)
            if row is None and wish.archived:
                row = find_chunk(connection, sight, wish.id, archived=True)
            if row is None:
                return None
            note_use(connection, (row.id,), now)
            return next(load_chunks(connection, contents, (row,)), None)

        return ChunkFound(chunk=await self._ask(question))

    async def page(self, wish: ListChunks) -> ChunkPage:
        """Chunks by what is known of them."""
        sight = await self._sight(wish.block, wish.actor, only=wish.layer)
        return await self._ask(lambda connection, contents: list_page(connection, contents, sight, wish))

    async def linked(self, wish: FindLinked) -> ChunksLinked:
        """The links of a chunk. Raises Refusal ``not_found``."""
        sight = await self._sight(wish.block, wish.actor)
        found = await self._ask(lambda connection, contents: linked_chunks(connection, contents, sight, wish))
        if found is None:
            raise chunk_not_found(wish.id)
        return found

    async def recall(self, wish: Recall) -> Recalled:
        """The chunks that answer a question."""
        sight, now = await self._sight(wish.block, wish.actor), self._now()
        meaning = await self._source.embed_query(wish.query)
        found = await self._ask(
            lambda connection, contents: recall(connection, contents, self._stems, sight, wish, now, meaning)
        )
        return msgspec.structs.replace(found, vectors=self._source.vectors)

    async def counts(self, wish: CountChunks) -> ChunkCounts:
        """How many there are: of a block with the owner's own, or in all of memory."""
        folders = None
        if wish.block is not None:
            folders = [
                layer_location(layer, wish.block, "owner").folder for layer in LAYERS if "global" in layer
            ]
        return await self._ask(lambda connection, contents: count_chunks(connection, folders))

    async def row(self, chunk: str, block: str | None, actor: str, *, archived: bool = False) -> IndexedChunk:
        """Where a chunk lies that an asker may see. Raises Refusal ``not_found``."""
        sight = await self._sight(block, actor)
        found = await self._ask(lambda connection, _: find_chunk(connection, sight, chunk, archived=archived))
        if found is None:
            raise chunk_not_found(chunk)
        return found

    async def stale(self, block: str | None, days: int | None) -> list[IndexedChunk]:
        """Chunks that have expired, and those that were neither made nor used for so many days."""
        now = self._now()
        folder = "" if block is None else layer_location("project_global", block, "").folder
        return await self._ask(lambda connection, _: stale_chunks(connection, folder, now, days))

    async def paths(self, target: str) -> tuple[str, ...]:
        """The files that a target of a purge is now: those of a chunk, else the path itself."""
        if not is_chunk_id(target):
            return (target,)
        return await self._ask(lambda connection, _: chunk_paths(connection, target))

    async def _sight(self, block: str | None, actor: str, *, only: str | None = None) -> ChunkVisibility:
        if block is None and actor == OWNER:
            places = await self._ask(lambda connection, _: all_locations(connection))
        else:
            places = readable_layers(await self._policies.get(block), block, actor)
        return ChunkVisibility((place for place in places if only in (None, place.layer)), self._now())


def chunk_not_found(chunk: str) -> Refusal:
    """There is no such chunk, or not for this asker."""
    return Refusal("not_found", f"There is no chunk {chunk[:80]!r} here.")
