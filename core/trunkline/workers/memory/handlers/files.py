"""The endpoints of files."""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from trunkline.contracts.memory.files import (
    UNREADABLE,
    DeleteMemory,
    EditMemory,
    ListMemory,
    MemoryChanged,
    MemoryFile,
    MemoryFiles,
    MemoryListing,
    MoveMemory,
    ReadManyMemory,
    ReadMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline.contracts.memory.path_rules import encode_text, normalize_path
from trunkline.contracts.memory.search import MemoryHit, MemoryHits, SearchMemory
from trunkline.contracts.memory.store import Change, MemoryStore
from trunkline.contracts.memory.subjects import (
    MEMORY_DELETE,
    MEMORY_EDIT,
    MEMORY_LIST,
    MEMORY_MOVE,
    MEMORY_READ,
    MEMORY_READ_MANY,
    MEMORY_SEARCH,
    MEMORY_WRITE,
    MEMORY_WRITE_MANY,
)
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry, scope_of
from trunkline_bus import Request

_log = logging.getLogger(__name__)

NEVER = datetime.fromtimestamp(0, UTC)

Rank = Callable[[SearchMemory, Sequence[MemoryHit]], Sequence[MemoryHit]]


class FileHandlers:
    """Answers requests from a store. ``rank`` orders the hits of a search."""

    def __init__(self, store: MemoryStore, rank: Rank) -> None:
        self._store = store
        self._rank = rank

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_READ, self._read)
        await endpoints.add(MEMORY_READ_MANY, self._read_many)
        await endpoints.add(MEMORY_LIST, self._list)
        await endpoints.add(MEMORY_SEARCH, self._search)
        await endpoints.add(MEMORY_WRITE, self._write)
        await endpoints.add(MEMORY_WRITE_MANY, self._write_many)
        await endpoints.add(MEMORY_EDIT, self._edit)
        await endpoints.add(MEMORY_DELETE, self._delete)
        await endpoints.add(MEMORY_MOVE, self._move)

    async def _read(self, request: Request[ReadMemory]) -> MemoryFile:
        return await self._store.read(request.data.path, request.data.version)

    async def _read_many(self, request: Request[ReadManyMemory]) -> MemoryFiles:
        files: list[MemoryFile] = []
        paths = tuple(map(normalize_path, request.data.paths))
        for path, found in zip(paths, await self._store.read_many(paths), strict=True):
            if isinstance(found, MemoryFile):
                files.append(
                    msgspec.structs.replace(found, content=found.content[: request.data.max_characters])
                )
            elif found.code == "invalid_path":
                _log.warning("a file of memory is left unread: %s", found.message)
                files.append(_read_failure(path, found.message))
            elif found.code != "not_found":
                raise found
        return MemoryFiles(files=tuple(files))

    async def _list(self, request: Request[ListMemory]) -> MemoryListing:
        command = request.data
        unread = await self._store.unread(command.path) if command.unread else ()
        return MemoryListing(
            entries=await self._store.list(command.path, recursive=command.recursive), unread=unread
        )

    async def _search(self, request: Request[SearchMemory]) -> MemoryHits:
        hits = await self._store.search(request.data)
        ranked = tuple(self._rank(request.data, hits))
        return MemoryHits(hits=ranked, vectors=self._store.vectors)

    async def _write(self, request: Request[WriteMemory]) -> MemoryChanged:
        command = request.data
        expected = {} if command.expected is None else {command.path: command.expected}
        change = Change(
            {command.path: encode_text(command.path, command.content)},
            actor=command.actor,
            reason=command.reason,
            scope=scope_of(request),
        )
        version = await self._store.change(change, expected=dict[str, str | None](expected))
        return MemoryChanged(paths=(command.path,), version=version, actor=command.actor)

    async def _write_many(self, request: Request[WriteManyMemory]) -> MemoryChanged:
        command = request.data
        files: dict[str, bytes | None] = dict.fromkeys(command.gone)
        files |= {path: encode_text(path, text) for path, text in command.files.items()}
        change = Change(files, actor=command.actor, reason=command.reason, scope=scope_of(request))
        version = await self._store.change(change, expected=dict[str, str | None](command.expected))
        return MemoryChanged(paths=tuple(files), version=version, actor=command.actor)

    async def _edit(self, request: Request[EditMemory]) -> MemoryChanged:
        command = request.data
        version = await self._store.edit(
            command.path,
            command.old,
            command.new,
            actor=command.actor,
            reason=command.reason,
            scope=scope_of(request),
            expected=command.expected,
        )
        return MemoryChanged(paths=(command.path,), version=version, actor=command.actor)

    async def _delete(self, request: Request[DeleteMemory]) -> MemoryChanged:
        command = request.data
        version = await self._store.delete(
            command.path,
            actor=command.actor,
            reason=command.reason,
            scope=scope_of(request),
            expected=command.expected,
        )
        return MemoryChanged(paths=(command.path,), version=version, actor=command.actor)

    async def _move(self, request: Request[MoveMemory]) -> MemoryChanged:
        command = request.data
        version = await self._store.move(
            command.source,
            command.target,
            actor=command.actor,
            reason=command.reason,
            scope=scope_of(request),
            expected=command.expected,
        )
        return MemoryChanged(paths=(command.source, command.target), version=version, actor=command.actor)


def _read_failure(path: str, why: str) -> MemoryFile:
    return MemoryFile(path=path, content=UNREADABLE, hash="", modified_at=NEVER, unread=why)
