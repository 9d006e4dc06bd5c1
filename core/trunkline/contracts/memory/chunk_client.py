"""The chunks of one block, over the bus: the part of ``Memory`` that remembers and recalls. Keeps no state."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from trunkline.contracts.blocks.messages import BlockConfig, MemoryPolicy
from trunkline.contracts.memory.chunks import (
    DEFAULT_CONFIDENCE,
    DEFAULT_LINK_LIMIT,
    DEFAULT_PAGE_SIZE,
    DEFAULT_RECALL_LIMIT,
    DEFAULT_SOURCE,
    MIN_RECALL_CONFIDENCE,
    Chunk,
    FindLinked,
    ForgetChunk,
    GetChunk,
    Layer,
    LinkChunks,
    LinkedChunk,
    ListChunks,
    Recall,
    Recalled,
    RecalledChunk,
    Remember,
    Remembered,
    UpdateChunk,
)
from trunkline.contracts.memory.client_base import MemoryClientBase
from trunkline.contracts.memory.learned_visibility import is_chunk_withheld
from trunkline.contracts.memory.messages import ReadMemory
from trunkline.contracts.memory.paths import layer_folder
from trunkline.contracts.memory.subjects import (
    MEMORY_CHUNK,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_LINK,
    MEMORY_LINKED,
    MEMORY_READ,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_UPDATE_CHUNK,
)
from trunkline.errors import ToolError
from trunkline_bus import RemoteFault

MOST = 1_000
"""Chunks that are looked through when some of those found may not be shown."""


class ChunkMemory(MemoryClientBase):
    """The chunks that an actor may see and make in a block; ``permit`` counts for the files that they are."""

    async def remember(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        confidence: float = DEFAULT_CONFIDENCE,
        chunk_type: str | None = None,
        layer: Layer | None = None,
        conversation: str | None = None,
        message: str | None = None,
        source: str = DEFAULT_SOURCE,
        expires_at: datetime | None = None,
        fields: dict[str, Any] | None = None,
    ) -> Remembered:
        """Keep a text as chunks (RLM-F9)."""
        if not isinstance(content, str):
            raise ToolError(
                f"What to remember must be text, not {type(content).__name__}.", kind="invalid_arguments"
            )
        wish = Remember(
            content=content,
            actor=self._actor,
            conversation_id=conversation or self._scope.conversation or "",
            block=self._block,
            tags=tuple(tags),
            confidence=confidence,
            chunk_type=chunk_type,
            layer=await self._writable_layer(layer),
            source=source,
            message_id=message,
            expires_at=expires_at,
            fields=fields or {},
        )
        return await self._call(MEMORY_REMEMBER, wish)

    async def recall(
        self,
        query: str,
        *,
        conversation: str | None = None,
        limit: int = DEFAULT_RECALL_LIMIT,
        min_confidence: float = MIN_RECALL_CONFIDENCE,
        tags: Sequence[str] = (),
        chunk_type: str | None = None,
    ) -> Recalled:
        """The chunks that answer a question, best first (RLM-F10)."""
        wish = Recall(
            query=query,
            actor=self._actor,
            block=self._block,
            conversation_id=conversation,
            max_results=limit,
            min_confidence=min_confidence,
            tags=tuple(tags),
            chunk_type=chunk_type,
        )
        found = await self._call(MEMORY_RECALL, wish)
        shown = await self._is_shown(found.chunks)
        if len(shown) == len(found.chunks):
            return found
        more = await self._call(MEMORY_RECALL, replace(wish, max_results=MOST))
        return _without_hidden(found, (await self._is_shown(more.chunks))[:limit])

    async def chunk(self, chunk: str, *, archived: bool = False) -> Chunk | None:
        """A chunk by its id; None when there is none, or it is private to another."""
        wish = GetChunk(id=chunk, actor=self._actor, block=self._block, archived=archived)
        found = (await self._call(MEMORY_CHUNK, wish)).chunk
        return found if found is not None and await self._may_show(found) else None

    async def chunks(
        self,
        *,
        tags: Sequence[str] = (),
        chunk_type: str | None = None,
        conversation: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        archived: bool = False,
        limit: int = DEFAULT_PAGE_SIZE,
        offset: int = 0,
    ) -> Sequence[Chunk]:
        """Chunks that have all of ``tags`` and whatever else is given, newest first."""
        wish = ListChunks(
            actor=self._actor,
            block=self._block,
            tags=tuple(tags),
            chunk_type=chunk_type,
            conversation_id=conversation,
            created_after=created_after,
            created_before=created_before,
            archived=archived,
            limit=limit,
            offset=offset,
        )
        found = (await self._call(MEMORY_CHUNKS, wish)).chunks
        shown = await self._filter_chunks(found)
        if len(shown) == len(found):
            return found
        more = (await self._call(MEMORY_CHUNKS, replace(wish, limit=MOST, offset=0))).chunks
        return (await self._filter_chunks(more))[offset : offset + limit]

    async def linked(
        self, chunk: str, link_type: str | None = None, *, limit: int = DEFAULT_LINK_LIMIT
    ) -> Sequence[LinkedChunk]:
        """Return the chunks that a chunk is linked to, in both directions, strongest first."""
        wish = FindLinked(id=chunk, actor=self._actor, block=self._block, link_type=link_type, limit=limit)
        if not await self._is_unrestricted("read") and await self.chunk(chunk) is None:
            raise ToolError(_NONE.format(chunk), kind="not_found")
        found = (await self._call(MEMORY_LINKED, wish)).links
        return [one for one in found if await self._may_show(one.chunk)]

    async def link(
        self, source: str, target: str, link_type: str, *, strength: float = 1.0, remove: bool = False
    ) -> str:
        """Link a chunk to another by hand, or take such a link out; returns the version."""
        await self._check_change(source)
        if not remove and not await self._is_unrestricted("read") and await self.chunk(target) is None:
            raise ToolError(_NONE.format(target), kind="not_found")
        wish = LinkChunks(
            source_id=source,
            target_id=target,
            link_type=link_type,
            actor=self._actor,
            block=self._block,
            strength=strength,
            remove=remove,
        )
        return (await self._call(MEMORY_LINK, wish)).version

    async def revise(
        self,
        chunk: str,
        *,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        confidence: float | None = None,
        chunk_type: str | None = None,
        fields: dict[str, Any] | None = None,
    ) -> str:
        """Change what is given of a chunk; returns the version."""
        await self._check_change(chunk)
        wish = UpdateChunk(
            id=chunk,
            actor=self._actor,
            block=self._block,
            content=content,
            tags=None if tags is None else tuple(tags),
            confidence=confidence,
            chunk_type=chunk_type,
            fields=fields,
        )
        return (await self._call(MEMORY_UPDATE_CHUNK, wish)).version

    async def forget(self, chunk: str, *, reason: str = "") -> str:
        """Take a chunk out of the files and the indexes; history keeps it. Returns the version."""
        await self._check_change(chunk)
        wish = ForgetChunk(id=chunk, actor=self._actor, block=self._block, reason=reason)
        return (await self._call(MEMORY_FORGET, wish)).version

    async def _writable_layer(self, layer: Layer | None) -> Layer | None:
        """The layer to write to, named when not every layer may be written. Raises ToolError."""
        if await self._is_unrestricted("write"):
            return layer
        named = layer or await self._first_layer()
        if named is not None:
            await self._check_layer(named)
        return named

    async def _check_layer(self, layer: Layer) -> None:
        """Raises ToolError when a chunk that is new today may not be written there."""
        chunks, today = f"/{layer_folder(layer, self._block, self._actor)}/chunks", datetime.now(UTC).date()
        await self.check_access(f"{chunks}/{today}/chunk-{today}-00000000.json", "write", False)

    async def _first_layer(self) -> Layer | None:
        """Return the layer that the block writes to by default."""
        try:
            file = await self._ask(MEMORY_READ, ReadMemory(path=f"{self._root}/block.toml"))
            policy = msgspec.toml.decode(file.content, type=BlockConfig).memory
        except RemoteFault:
            policy = MemoryPolicy()
        except msgspec.MsgspecError as error:
            raise ToolError(
                "The block's block.toml is not valid, so nothing is remembered.", kind="unsupported"
            ) from error
        return next(iter(policy.write_layers), None)

    async def _check_change(self, chunk: str) -> None:
        """Raises ToolError when the file of a chunk may not be written; if it cannot be told, when any may not."""
        if await self._is_unrestricted("write"):
            return
        wish = GetChunk(id=chunk, actor=self._actor, block=self._block, archived=True)
        found = (await self._call(MEMORY_CHUNK, wish)).chunk
        if found is not None:
            await self.check_access(f"/{found.path}", "write", False)
            return
        for layer in get_args(Layer):
            await self._check_layer(layer)

    async def _is_unrestricted(self, action: Literal["read", "write"]) -> bool:
        """Report whether all of memory may be read or written so, and no file need be looked at."""
        try:
            await self.check_access("/", action, True)
        except ToolError:
            return False
        return True

    async def _filter_chunks(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        return [chunk for chunk in chunks if await self._may_show(chunk)]

    async def _is_shown(self, found: Iterable[RecalledChunk]) -> tuple[RecalledChunk, ...]:
        return tuple([one for one in found if await self._may_show(one.chunk)])

    async def _may_show(self, chunk: Chunk) -> bool:
        """Report whether whoever asks may be told of a chunk."""
        if self.recipient is not None and is_chunk_withheld(chunk.path, chunk.metadata, self.recipient):
            return False
        return await self._visible(chunk.path)


_NONE = "There is no chunk {!r} here."


def _without_hidden(found: Recalled, shown: tuple[RecalledChunk, ...]) -> Recalled:
    """Remove from an answer all that tells of a chunk which may not be shown."""
    ids = tuple(one.chunk.id for one in shown)
    best = shown[0].chunk if shown else None
    return replace(
        found,
        answer=best.content if best else "",
        confidence=min(found.confidence, best.metadata.confidence) if best else 0.0,
        source_chunks=ids,
        traversal_path=ids,
        chunks=shown,
    )
