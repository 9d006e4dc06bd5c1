"""The client of one block's memory, which tools, context sources and background work use.

Each method is one operation: it fills a request and sends it through a ``Transport``. The operations and their
permitted callers are declared below the request types (``operation``). ``authorization`` decides what a request may
reach.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from trunkline._util.local_time import local_to_utc
from trunkline.contracts.memory.chunk import DEFAULT_CONFIDENCE, DEFAULT_SOURCE, Chunk, Layer
from trunkline.contracts.memory.chunks import (
    DEFAULT_LINK_LIMIT,
    DEFAULT_PAGE_SIZE,
    DEFAULT_RECALL_LIMIT,
    MEMORY_CHUNK,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_LINK,
    MEMORY_LINKED,
    MEMORY_RECALL,
    MEMORY_REMEMBER,
    MEMORY_UPDATE_CHUNK,
    MIN_RECALL_CONFIDENCE,
    FindLinked,
    ForgetChunk,
    GetChunk,
    LinkChunks,
    LinkedChunk,
    ListChunks,
    Recall,
    RecallResult,
    Remember,
    RememberResult,
    UpdateChunk,
)
from trunkline.contracts.memory.files import (
    MEMORY_DELETE,
    MEMORY_EDIT,
    MEMORY_LIST,
    MEMORY_READ,
    MEMORY_WRITE,
    DeleteMemory,
    EditMemory,
    ListMemory,
    MemoryEntry,
    MemoryFile,
    ReadMemory,
    WriteMemory,
)
from trunkline.contracts.memory.history import (
    MEMORY_BLAME,
    MEMORY_DIFF,
    MEMORY_HISTORY,
    MEMORY_REVERT,
    BlameMemory,
    DiffMemory,
    MemoryBlame,
    MemoryChange,
    MemoryDifference,
    MemoryHistory,
    MemoryReverted,
    RevertMemory,
)
from trunkline.contracts.memory.paths import path_in_block, root_path
from trunkline.contracts.memory.search import MEMORY_SEARCH, MemoryHits, PassageKind, SearchMemory
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.contracts.memory.transport import Transport
from trunkline.errors import ToolError

SELF = ""
"""The actor of a request before it is sent. ``AuthorizingTransport`` replaces it with its own actor and block."""


class Memory:
    """The memory of one block.

    A path is relative to the block's folder; a path that begins with ``/`` is relative to the memory root. Returned
    paths follow the same rule.

    Guarantees: a change is committed when its method returns. Methods may be called concurrently. The object keeps no
    state.

    Not guaranteed: that a file or chunk stays the same between two calls. Only methods that take ``expected`` detect a
    change in between. After ``timeout`` it is unknown whether memory did the work.

    Errors: every method raises ToolError with a text for the model. ``kind`` is ``permission_denied`` if this actor may
    not reach the path, ``invalid_arguments`` if an argument is not valid, ``unavailable`` if memory cannot be reached
    or the disk refuses, and ``timeout`` if memory did not answer in time. A text that a memory rule refuses has the
    kind of the rule's code. Each method states the further kinds.
    """

    def __init__(self, transport: Transport, block: str) -> None:
        self.transport = transport
        self._block = block

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """Return a file's text, now or at a version. Raises ToolError ``not_found`` if there is no such file or
        version.
        """
        file = await self.transport.call(MEMORY_READ, ReadMemory(path=self._root_path(path), version=version))
        return replace(file, path=self._relative(file.path))

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        """Write a whole file and return the version. ``expected`` is the hash that the file must have; "" requires that
        the file does not exist. Raises ToolError ``conflict`` if the file does not have the expected hash.
        """
        request = WriteMemory(path=self._root_path(path), content=content, actor=SELF, expected=expected)
        return (await self.transport.call(MEMORY_WRITE, request)).version

    async def edit(self, path: str, old: str, new: str, *, expected: str | None = None) -> str:
        """Replace the first occurrence of ``old`` and return the version. Raises ToolError ``not_found`` if there is no
        such file, and ``conflict`` if ``old`` is empty or not in the file, or if the file does not have the expected
        hash.
        """
        request = EditMemory(path=self._root_path(path), old=old, new=new, actor=SELF, expected=expected)
        return (await self.transport.call(MEMORY_EDIT, request)).version

    async def delete(self, path: str, *, expected: str | None = None) -> str:
        """Delete a file or folder and return the version. History keeps the content. Raises ToolError ``not_found`` if
        there is nothing at the path, and ``conflict`` if the file does not have the expected hash.
        """
        if not path.strip("/."):
            raise ToolError("Name the file or folder to delete.", kind="invalid_arguments")
        request = DeleteMemory(path=self._root_path(path), actor=SELF, expected=expected)
        return (await self.transport.call(MEMORY_DELETE, request)).version

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
        """Search text (``content``) or names (``filename``) under a path, best first. The other arguments restrict a
        search of text, as in ``SearchMemory``. Times without a zone are local. Hits that this actor may not read are
        left out. Raises ToolError ``invalid_arguments`` if an argument is not valid.
        """
        try:
            request = msgspec.convert(
                {
                    "query": query, "path": self._root_path(path), "kind": kind, "limit": limit, "kinds": tuple(kinds),
                    "tags": tuple(tags), "speaker": speaker, "since": since, "until": until,
                    "conversation": conversation, "min_confidence": min_confidence,
                },
                SearchMemory,
            )  # fmt: skip
        except msgspec.ValidationError as error:
            raise ToolError(
                f"Memory cannot be searched like this: {error}.", kind="invalid_arguments"
            ) from error
        zoned = replace(request, since=_in_utc(request.since), until=_in_utc(request.until))
        found = await self.transport.call(MEMORY_SEARCH, zoned)
        return replace(found, hits=tuple(replace(hit, path=self._relative(hit.path)) for hit in found.hits))

    async def list(self, path: str = "", *, recursive: bool = False) -> Sequence[MemoryEntry]:
        """Return the names under a folder, sorted. The list of a block without files is empty. Raises ToolError
        ``not_found`` if there is no such folder.
        """
        request = ListMemory(path=self._root_path(path), recursive=recursive)
        try:
            found = (await self.transport.call(MEMORY_LIST, request)).entries
        except ToolError as error:
            if error.kind == "not_found" and not path.strip("./"):
                return ()
            raise
        return tuple(replace(entry, path=self._relative(entry.path)) for entry in found)

    async def history(self, path: str, *, limit: int = 50) -> Sequence[MemoryChange]:
        """Return the changes of a path, the newest first, at most ``limit``. Raises ToolError ``not_found`` if there
        was never anything at the path.
        """
        request = MemoryHistory(path=self._root_path(path), limit=limit)
        return (await self.transport.call(MEMORY_HISTORY, request)).changes

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Return the commits that wrote the lines ``first`` to ``last`` of a file; with ``mainline`` the commits that
        brought the lines into this memory. Raises ToolError ``not_found`` if there is no such file or version.
        """
        request = BlameMemory(
            path=self._root_path(path), version=version, first=first, last=last, mainline=mainline
        )
        found = await self.transport.call(MEMORY_BLAME, request)
        return replace(found, path=self._relative(found.path))

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """Return the differences at a path between two versions. Without ``old`` return what the last change of the
        path did. Raises ToolError ``not_found`` if there is no such version, or if there was never anything at the
        path.
        """
        request = DiffMemory(path=self._root_path(path), old=old, new=new)
        found = await self.transport.call(MEMORY_DIFF, request)
        return replace(found, path=self._relative(found.path))

    async def revert(self, path: str, version: str | None = None, *, to: str | None = None) -> MemoryReverted:
        """Revert the last change of a path, or what ``version`` changed there. With ``to`` restore the path to that
        version. Later changes of other lines are kept. Raises ToolError ``not_found`` if there is no such change, and
        ``conflict`` if a later change is in the way or there is nothing to revert.
        """
        if not path.strip("/."):
            raise ToolError(
                "Name the file or folder whose change is to be reverted.", kind="invalid_arguments"
            )
        request = RevertMemory(path=self._root_path(path), actor=SELF, version=version, to=to)
        done = await self.transport.call(MEMORY_REVERT, request)
        return replace(done, paths=tuple(map(self._relative, done.paths)))

    async def export(self, target: Path) -> int:
        """Write an archive of all of memory, with its history, to ``target``, and return its size in bytes. Raises
        ToolError ``unavailable`` if the archive cannot be written or fetched, and ``unsupported`` in an isolated
        plugin.
        """
        return await self.transport.export(target)

    async def import_archive(
        self, source: Path, *, kind: str | None = None, dry_run: bool = False
    ) -> MemoryImport:
        """Import an archive that Trunkline exported, or an archive of another system. ``kind`` names that system;
        without it the system is recognised from the files. An import does not change the files that only the owner may
        change, and the reply lists them. With ``dry_run`` nothing is imported.

        Raises ToolError ``invalid_arguments`` if the archive cannot be used or is not recognised, and ``unsupported``
        in an isolated plugin. After any other error a part may be imported; a repeated import adds only what is new.
        """
        return await self.transport.import_archive(source, kind=kind, dry_run=dry_run)

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
    ) -> RememberResult:
        """Store a text as chunks. ``conversation`` defaults to the conversation that this memory was made for. Raises
        ToolError ``invalid_arguments`` if the text, the type or its fields are not valid.
        """
        if not isinstance(content, str):
            raise ToolError(
                f"What to remember must be text, not {type(content).__name__}.", kind="invalid_arguments"
            )
        request = Remember(
            content=content,
            actor=SELF,
            conversation_id=conversation or "",
            tags=tuple(tags),
            confidence=confidence,
            chunk_type=chunk_type,
            layer=layer,
            source=source,
            message_id=message,
            expires_at=expires_at,
            fields=fields or {},
        )
        return await self.transport.call(MEMORY_REMEMBER, request)

    async def recall(
        self,
        query: str,
        *,
        conversation: str | None = None,
        limit: int = DEFAULT_RECALL_LIMIT,
        min_confidence: float = MIN_RECALL_CONFIDENCE,
        tags: Sequence[str] = (),
        chunk_type: str | None = None,
    ) -> RecallResult:
        """Return the chunks that answer a question, the best first. No model is called. Chunks that this actor may not
        see are left out. Raises ToolError ``invalid_arguments`` if an argument is not valid.
        """
        request = Recall(
            query=query,
            actor=SELF,
            conversation_id=conversation,
            max_results=limit,
            min_confidence=min_confidence,
            tags=tuple(tags),
            chunk_type=chunk_type,
        )
        return await self.transport.call(MEMORY_RECALL, request)

    async def chunk(self, chunk: str, *, archived: bool = False) -> Chunk | None:
        """Return a chunk by its id; None if there is none, or if the chunk is private to another actor. Raises nothing
        besides the errors of every method.
        """
        request = GetChunk(id=chunk, actor=SELF, archived=archived)
        return (await self.transport.call(MEMORY_CHUNK, request)).chunk

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
        """Return the chunks that have all of ``tags`` and match all other arguments, the newest first. Two pages are
        not one snapshot. Raises nothing besides the errors of every method.
        """
        request = ListChunks(
            actor=SELF,
            tags=tuple(tags),
            chunk_type=chunk_type,
            conversation_id=conversation,
            created_after=created_after,
            created_before=created_before,
            archived=archived,
            limit=limit,
            offset=offset,
        )
        return (await self.transport.call(MEMORY_CHUNKS, request)).chunks

    async def linked(
        self, chunk: str, link_type: str | None = None, *, limit: int = DEFAULT_LINK_LIMIT
    ) -> Sequence[LinkedChunk]:
        """Return the links of a chunk in both directions, the strongest first. Raises ToolError ``not_found`` if there
        is no such chunk.
        """
        request = FindLinked(id=chunk, actor=SELF, link_type=link_type, limit=limit)
        return (await self.transport.call(MEMORY_LINKED, request)).links

    async def link(
        self, source: str, target: str, link_type: str, *, strength: float = 1.0, remove: bool = False
    ) -> str:
        """Link a chunk to another, or with ``remove`` remove such a link; return the version. Raises ToolError
        ``not_found`` if there is no such chunk or link, and ``invalid_arguments`` if the type of link is unknown.
        """
        request = LinkChunks(
            source_id=source,
            target_id=target,
            link_type=link_type,
            actor=SELF,
            strength=strength,
            remove=remove,
        )
        return (await self.transport.call(MEMORY_LINK, request)).version

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
        """Change the given parts of a chunk and return the version. Raises ToolError ``not_found`` if there is no such
        chunk, and ``invalid_arguments`` if a value is not valid.
        """
        request = UpdateChunk(
            id=chunk,
            actor=SELF,
            content=content,
            tags=None if tags is None else tuple(tags),
            confidence=confidence,
            chunk_type=chunk_type,
            fields=fields,
        )
        return (await self.transport.call(MEMORY_UPDATE_CHUNK, request)).version

    async def forget(self, chunk: str, *, reason: str = "") -> str:
        """Delete a chunk from the files and the indexes and return the version. History keeps the text. Raises
        ToolError ``not_found`` if there is no such chunk.
        """
        request = ForgetChunk(id=chunk, actor=SELF, reason=reason)
        return (await self.transport.call(MEMORY_FORGET, request)).version

    def _root_path(self, path: str) -> str:
        return root_path(self._block, path)

    def _relative(self, path: str) -> str:
        return path_in_block(self._block, path)


def _in_utc(when: datetime | None) -> datetime | None:
    """Return the time in UTC. A time without a zone is local. Raises ToolError ``invalid_arguments``."""
    try:
        return None if when is None else local_to_utc(when)
    except ValueError as error:
        raise ToolError(f"Memory cannot be searched like this: {error}.", kind="invalid_arguments") from error
