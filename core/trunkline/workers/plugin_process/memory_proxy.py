"""The ``Memory`` of a tool that runs apart: each wish travels with the call's replies, and comes back answered.

So the process needs no right to ask memory for anything: it reaches the block of a call while that call runs.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import msgspec

from trunkline.contracts.memory.chunks import (
    DEFAULT_CONFIDENCE,
    DEFAULT_LINK_LIMIT,
    DEFAULT_PAGE_SIZE,
    DEFAULT_RECALL_LIMIT,
    DEFAULT_SOURCE,
    MIN_RECALL_CONFIDENCE,
    Chunk,
    Layer,
    LinkedChunk,
    Recalled,
    Remembered,
)
from trunkline.contracts.memory.messages import (
    MemoryBlame,
    MemoryChange,
    MemoryDifference,
    MemoryEntry,
    MemoryFile,
    MemoryHits,
    MemoryImport,
    MemoryReverted,
    PassageKind,
)
from trunkline.contracts.plugins.messages import MemoryHostCall, MemoryOperation
from trunkline.errors import ToolError, error_kind_named
from trunkline.workers.plugin_process.host_calls import HostCallClient

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds to wait for an answer."""


class ProxyMemory:
    """Asks by ``wishes``."""

    def __init__(self, wishes: HostCallClient) -> None:
        self._wishes = wishes

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """A file's text, now or at a version."""
        return await self._ask("read", MemoryFile, path=path, version=version)

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        """Write a whole file; returns the version."""
        return await self._ask("write", str, path=path, content=content, expected=expected)

    async def edit(self, path: str, old: str, new: str, *, expected: str | None = None) -> str:
        """Replace the first occurrence of ``old``; returns the version."""
        return await self._ask("edit", str, path=path, old=old, new=new, expected=expected)

    async def delete(self, path: str, *, expected: str | None = None) -> str:
        """Delete a file or folder; returns the version."""
        return await self._ask("delete", str, path=path, expected=expected)

    async def search(
        self,
        query: str,
        *,
        path: str = "",
        kind: Literal["content", "filename"] = "content",
        limit: int = 10,
        kinds: Sequence[PassageKind] = (),
        tags: Sequence[str] = (),
        speaker: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        conversation: str = "",
        min_confidence: float = 0.0,
    ) -> MemoryHits:
        """Search text or names under a path, best first."""
        return await self._ask(
            "search", MemoryHits, query=query, path=path, kind=kind, limit=limit, kinds=kinds, tags=tags,
            speaker=speaker, since=since, until=until, conversation=conversation, min_confidence=min_confidence,
        )  # fmt: skip

    async def list(self, path: str = "", *, recursive: bool = False) -> Sequence[MemoryEntry]:
        """Names under a folder, sorted."""
        return await self._ask("list", list[MemoryEntry], path=path, recursive=recursive)

    async def history(self, path: str, *, limit: int = 50) -> Sequence[MemoryChange]:
        """The changes of a path, newest first."""
        return await self._ask("history", list[MemoryChange], path=path, limit=limit)

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Who wrote the lines of a file."""
        return await self._ask(
            "blame", MemoryBlame, path=path, version=version, first=first, last=last, mainline=mainline
        )

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """What differs at a path between two versions."""
        return await self._ask("diff", MemoryDifference, path=path, old=old, new=new)

    async def revert(self, path: str, version: str | None = None, *, to: str | None = None) -> MemoryReverted:
        """Take a change of a path back."""
        return await self._ask("revert", MemoryReverted, path=path, version=version, to=to)

    async def export(self, target: Path) -> int:
        """Refused: an archive of everything is no business of a plugin that is kept apart."""
        raise ToolError(
            "Memory cannot be exported by a plugin that runs in a process of its own.", kind="unsupported"
        )

    async def bring_in(self, source: Path, *, kind: str | None = None, dry_run: bool = False) -> MemoryImport:
        """Refused, as the export is."""
        raise ToolError(
            "Nothing can be imported by a plugin that runs in a process of its own.", kind="unsupported"
        )

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
        """Keep a text as chunks."""
        return await self._ask(
            "remember", Remembered, content=content, tags=tags, confidence=confidence, chunk_type=chunk_type,
            layer=layer, conversation=conversation, message=message, source=source, expires_at=expires_at,
            fields=fields,
        )  # fmt: skip

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
        """The chunks that answer a question, best first."""
        return await self._ask(
            "recall", Recalled, query=query, conversation=conversation, limit=limit,
            min_confidence=min_confidence, tags=tags, chunk_type=chunk_type,
        )  # fmt: skip

    async def chunk(self, chunk: str, *, archived: bool = False) -> Chunk | None:
        """A chunk by its id."""
        found: Chunk | None = await self._ask("chunk", Chunk | None, chunk=chunk, archived=archived)  # type: ignore[arg-type]
        return found

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
        """Chunks by tags, type, conversation or time, newest first."""
        return await self._ask(
            "chunks", list[Chunk], tags=tags, chunk_type=chunk_type, conversation=conversation,
            created_after=created_after, created_before=created_before, archived=archived, limit=limit, offset=offset,
        )  # fmt: skip

    async def linked(
        self, chunk: str, link_type: str | None = None, *, limit: int = DEFAULT_LINK_LIMIT
    ) -> Sequence[LinkedChunk]:
        """What a chunk is linked to, strongest first."""
        return await self._ask("linked", list[LinkedChunk], chunk=chunk, link_type=link_type, limit=limit)

    async def link(
        self, source: str, target: str, link_type: str, *, strength: float = 1.0, remove: bool = False
    ) -> str:
        """Link a chunk to another by hand; returns the version."""
        return await self._ask(
            "link", str, source=source, target=target, link_type=link_type, strength=strength, remove=remove
        )

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
        return await self._ask(
            "revise", str, chunk=chunk, content=content, tags=tags, confidence=confidence, chunk_type=chunk_type,
            fields=fields,
        )  # fmt: skip

    async def forget(self, chunk: str, *, reason: str = "") -> str:
        """Take a chunk out; history keeps it. Returns the version."""
        return await self._ask("forget", str, chunk=chunk, reason=reason)

    async def _ask(self, verb: MemoryOperation, result: type[T], /, **arguments: Any) -> T:
        def wish(number: int) -> MemoryHostCall:
            return MemoryHostCall(number=number, verb=verb, arguments=arguments)

        answer = None
        with anyio.move_on_after(PATIENCE):
            answer = await self._wishes.call(wish)
        if answer is None:
            raise ToolError(
                "Memory did not answer in time. Whether it did the work is unknown: look.", kind="timeout"
            )
        if answer.error is not None:
            raise ToolError(answer.error, kind=error_kind_named(answer.code))
        return msgspec.json.decode(answer.result, type=result)
