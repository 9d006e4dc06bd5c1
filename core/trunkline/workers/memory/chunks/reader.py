"""Reads chunks, and restricts every request to the chunks that its actor may see. Changes no file."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from trunkline.contracts.actors import OWNER
from trunkline.contracts.memory.chunk_index import (
    ChunkIndex,
    ChunkLocation,
    ChunkVisibility,
    visible_folders,
)
from trunkline.contracts.memory.chunks import (
    ChunkCounts,
    ChunkFound,
    ChunkPage,
    ChunksLinked,
    CountChunks,
    FindLinked,
    GetChunk,
    ListChunks,
    Recall,
    RecallResult,
)
from trunkline.contracts.memory.layers import LAYERS, layer_location, readable_layers
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline_bus import Refusal


class ChunkReader:
    """Reads the chunks of one memory. ``now`` returns the time."""

    def __init__(
        self,
        index: ChunkIndex,
        policies: BlockPolicies,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._index = index
        self._policies = policies
        self._now = now

    async def get(self, request: GetChunk) -> ChunkFound:
        """Return a chunk, and count the access."""
        visible = await self._visible(request.block, request.actor)
        return ChunkFound(chunk=await self._index.get(visible, request.id, archived=request.archived))

    async def page(self, request: ListChunks) -> ChunkPage:
        """Return the chunks that match the request's fields."""
        return await self._index.page(
            await self._visible(request.block, request.actor, only=request.layer), request
        )

    async def linked(self, request: FindLinked) -> ChunksLinked:
        """Return the links of a chunk. Raises Refusal ``not_found``."""
        found = await self._index.linked(await self._visible(request.block, request.actor), request)
        if found is None:
            raise chunk_not_found(request.id)
        return found

    async def recall(self, request: Recall) -> RecallResult:
        """Return the chunks that answer a question."""
        return await self._index.recall(await self._visible(request.block, request.actor), request)

    async def counts(self, request: CountChunks) -> ChunkCounts:
        """Return the numbers of chunks of a block and the owner, or of all of memory."""
        folders = None
        if request.block is not None:
            folders = [
                layer_location(layer, request.block, "owner").folder for layer in LAYERS if "global" in layer
            ]
        return await self._index.count(folders)

    async def row(
        self, chunk: str, block: str | None, actor: str, *, archived: bool = False
    ) -> ChunkLocation:
        """Return the location of a chunk that the actor may see. Raises Refusal ``not_found``."""
        found = await self._index.locate(await self._visible(block, actor), chunk, archived=archived)
        if found is None:
            raise chunk_not_found(chunk)
        return found

    async def stale(self, block: str | None, days: int | None) -> Sequence[ChunkLocation]:
        """Return the chunks that have expired, and those that were neither changed nor accessed for ``days``."""
        folder = "" if block is None else layer_location("project_global", block, "").folder
        return await self._index.stale(folder, self._now(), days)

    async def _visible(self, block: str | None, actor: str, *, only: str | None = None) -> ChunkVisibility:
        if block is None and actor == OWNER:
            layers = await self._index.layers()
        else:
            layers = readable_layers(await self._policies.get(block), block, actor)
        return visible_folders((one for one in layers if only in (None, one.layer)), self._now())


def chunk_not_found(chunk: str) -> Refusal:
    """Return the refusal for a chunk that does not exist or that the actor may not see."""
    return Refusal("not_found", f"There is no chunk {chunk[:80]!r} here.")
