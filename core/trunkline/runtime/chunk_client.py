"""The chunks of one block, over the bus: the part of ``Memory`` that remembers and recalls. Keeps no state."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trunkline.errors import ToolError
from trunkline.messages.chunks import (
    BEST,
    LINKED,
    PAGE,
    SAID,
    SURE_ENOUGH,
    TRUSTED,
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
    Remember,
    Remembered,
    UpdateChunk,
)
from trunkline.runtime.memory_calls import MemoryCalls
from trunkline.subjects import (
    MEMORY_CHUNK,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_LINK,
    MEMORY_LINKED,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_UPDATE_CHUNK,
)


class ChunkMemory(MemoryCalls):
    """The chunks that an actor may see and make in a block."""

    async def remember(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        confidence: float = TRUSTED,
        chunk_type: str | None = None,
        layer: Layer | None = None,
        conversation: str | None = None,
        message: str | None = None,
        source: str = SAID,
        expires_at: datetime | None = None,
        fields: dict[str, Any] | None = None,
    ) -> Remembered:
        """Keep a text as chunks (RLM-F9)."""
        if not isinstance(content, str):
            raise ToolError(f"What to remember must be text, not {type(content).__name__}.")
        wish = Remember(
            content=content,
            actor=self._actor,
            conversation_id=conversation or self._scope.conversation or "",
            block=self._block,
            tags=tuple(tags),
            confidence=confidence,
            chunk_type=chunk_type,
            layer=layer,
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
        limit: int = BEST,
        min_confidence: float = SURE_ENOUGH,
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
        return await self._call(MEMORY_RECALL, wish)

    async def chunk(self, chunk: str, *, archived: bool = False) -> Chunk | None:
        """A chunk by its id; None when there is none, or it is private to another."""
        wish = GetChunk(id=chunk, actor=self._actor, block=self._block, archived=archived)
        return (await self._call(MEMORY_CHUNK, wish)).chunk

    async def chunks(
        self,
        *,
        tags: Sequence[str] = (),
        chunk_type: str | None = None,
        conversation: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        archived: bool = False,
        limit: int = PAGE,
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
        return (await self._call(MEMORY_CHUNKS, wish)).chunks

    async def linked(
        self, chunk: str, link_type: str | None = None, *, limit: int = LINKED
    ) -> Sequence[LinkedChunk]:
        """What a chunk is linked to, in both directions, strongest first."""
        wish = FindLinked(id=chunk, actor=self._actor, block=self._block, link_type=link_type, limit=limit)
        return (await self._call(MEMORY_LINKED, wish)).links

    async def link(
        self, source: str, target: str, link_type: str, *, strength: float = 1.0, remove: bool = False
    ) -> str:
        """Link a chunk to another by hand, or take such a link out; returns the version."""
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
        wish = ForgetChunk(id=chunk, actor=self._actor, block=self._block, reason=reason)
        return (await self._call(MEMORY_FORGET, wish)).version
