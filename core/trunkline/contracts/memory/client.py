"""The memory of one block, over the bus: what tools and context sources are given as ``Memory``. Keeps no state.

Paths are relative to the block's folder; one that begins with ``/`` is relative to the whole memory, and so are the
paths that come back, when they lie outside the block's folder. Errors are ToolErrors with a text for the model.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
import msgspec

from trunkline.contracts.memory.chunk_client import ChunkMemory
from trunkline.contracts.memory.client_base import A, Q
from trunkline.contracts.memory.export_transfer import export_memory
from trunkline.contracts.memory.import_preparation import prepare_import
from trunkline.contracts.memory.import_transfer import import_memory
from trunkline.contracts.memory.importer import Importer
from trunkline.contracts.memory.learned_visibility import is_withheld, may_hold_learned
from trunkline.contracts.memory.messages import (
    BlameMemory,
    DeleteMemory,
    DiffMemory,
    EditMemory,
    FileDifference,
    ListMemory,
    MemoryBlame,
    MemoryChange,
    MemoryDifference,
    MemoryEntry,
    MemoryFile,
    MemoryHistory,
    MemoryHit,
    MemoryHits,
    MemoryImport,
    MemoryReverted,
    PassageKind,
    ReadManyMemory,
    ReadMemory,
    RevertMemory,
    SearchMemory,
    WriteMemory,
)
from trunkline.contracts.memory.paths import (
    is_chunk_path,
    is_owner_only,
    is_private_to_another,
    path_in_block,
    root_path,
)
from trunkline.contracts.memory.subjects import (
    MEMORY_BLAME,
    MEMORY_DELETE,
    MEMORY_DIFF,
    MEMORY_EDIT,
    MEMORY_HISTORY,
    MEMORY_LIST,
    MEMORY_READ,
    MEMORY_READ_MANY,
    MEMORY_REVERT,
    MEMORY_SEARCH,
    MEMORY_WRITE,
)
from trunkline.errors import ToolError, TrunklineError, error_kind_for_code
from trunkline_bus import BusError, Endpoint, RemoteFault

EXPORT_SECONDS = 600.0

CHANGES = (MEMORY_WRITE, MEMORY_EDIT, MEMORY_DELETE, MEMORY_REVERT)
OF_ONE_FILE = (MEMORY_READ, MEMORY_WRITE, MEMORY_EDIT, MEMORY_BLAME)
"""What has to do with one file alone. The others reach all that lies or lay below a path."""

SHOWN_IN_PARTS = (MEMORY_LIST, MEMORY_SEARCH)
"""What shows many paths: those that may not be read are left out."""

MOST_HITS = 100


class BlockMemory(ChunkMemory):
    """``Memory`` for one block: its files here, its chunks in ``ChunkMemory``. ``importers`` give what knows other
    systems' archives."""

    importers: Callable[[], Sequence[Importer]] = staticmethod(tuple)

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """A file's text, now or at a version."""
        file = await self._call(MEMORY_READ, ReadMemory(path=self._root_path(path), version=version))
        if self.recipient is not None and is_withheld(file.path, file.content, self.recipient):
            raise ToolError(_ELSEWHERE.format(path), kind="permission_denied")
        return msgspec.structs.replace(file, path=self._relative(file.path))

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        """Write a whole file; returns the version."""
        wish = WriteMemory(
            path=self._writable_root_path(path), content=content, actor=self._actor, expected=expected
        )
        return (await self._call(MEMORY_WRITE, wish)).version

    async def edit(self, path: str, old: str, new: str, *, expected: str | None = None) -> str:
        """Replace the first occurrence of ``old``; returns the version."""
        wish = EditMemory(
            path=self._writable_root_path(path), old=old, new=new, actor=self._actor, expected=expected
        )
        return (await self._call(MEMORY_EDIT, wish)).version

    async def delete(self, path: str, *, expected: str | None = None) -> str:
        """Delete a file or folder; history keeps it. Returns the version."""
        if not path.strip("/."):
            raise ToolError("Name the file or folder to delete.", kind="invalid_arguments")
        wish = DeleteMemory(path=self._writable_root_path(path), actor=self._actor, expected=expected)
        return (await self._call(MEMORY_DELETE, wish)).version

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
        """Search text (``content``) or names (``filename``) under a path, best first."""
        try:
            wish = msgspec.convert(
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
        here = msgspec.structs.replace(wish, since=_placed(wish.since), until=_placed(wish.until))
        found = await self._call(MEMORY_SEARCH, here)
        hits = await self._shown_hits(found.hits)
        if len(hits) < len(found.hits) and limit < MOST_HITS:  # others stand behind those that were left out
            more = await self._call(MEMORY_SEARCH, msgspec.structs.replace(here, limit=MOST_HITS))
            hits = (await self._shown_hits(more.hits))[:limit]
        named = (msgspec.structs.replace(hit, path=self._relative(hit.path)) for hit in hits)
        return msgspec.structs.replace(found, hits=tuple(named))

    async def list(self, path: str = "", *, recursive: bool = False) -> Sequence[MemoryEntry]:
        """Names under a folder, sorted. A block without any file has an empty list."""
        try:
            wish = ListMemory(path=self._root_path(path), recursive=recursive)
            found = (await self._ask(MEMORY_LIST, wish)).entries
        except RemoteFault as fault:
            if fault.code == "not_found" and not path.strip("./"):
                return ()
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        return tuple(
            [
                msgspec.structs.replace(entry, path=self._relative(entry.path))
                for entry in found
                if await self._visible(entry.path)
            ]
        )

    async def history(self, path: str, *, limit: int = 50) -> Sequence[MemoryChange]:
        """The changes of a path, newest first."""
        wish = MemoryHistory(path=self._root_path(path), limit=limit)
        changes = (await self._call(MEMORY_HISTORY, wish)).changes
        to = self.recipient
        if to is None or not may_hold_learned(wish.path):
            return changes
        return [
            msgspec.structs.replace(one, previous=None)
            if is_withheld(wish.path, one.previous or "", to)
            else one
            for one in changes
        ]

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Who wrote the lines ``first`` to ``last`` of a file."""
        wish = BlameMemory(
            path=self._root_path(path), version=version, first=first, last=last, mainline=mainline
        )
        if self.recipient is not None and may_hold_learned(wish.path):
            await self.read(path, version)  # whoever may not be told of it is told no line of it
        found = await self._call(MEMORY_BLAME, wish)
        return msgspec.structs.replace(found, path=self._relative(found.path))

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """Return the differences at a path between two versions; without ``old`` those of its last change."""
        found = await self._call(MEMORY_DIFF, DiffMemory(path=self._root_path(path), old=old, new=new))
        if self.recipient is not None and any(
            may_hold_learned(one) for file in found.files for one in _paths(file)
        ):
            raise ToolError(
                f"{path or '/'} holds what was learned, which is compared by no tool.",
                kind="permission_denied",
            )
        return msgspec.structs.replace(found, path=self._relative(found.path))

    async def revert(self, path: str, version: str | None = None, *, to: str | None = None) -> MemoryReverted:
        """Take back the last change of a path, or what a version did there; with ``to`` go back to that version."""
        if not path.strip("/."):
            raise ToolError(
                "Name the file or folder whose change is to be taken back.", kind="invalid_arguments"
            )
        wish = RevertMemory(path=self._writable_root_path(path), actor=self._actor, version=version, to=to)
        done = await self._call(MEMORY_REVERT, wish)
        return msgspec.structs.replace(done, paths=tuple(map(self._relative, done.paths)))

    async def export(self, target: Path) -> int:
        """Write an archive of the whole memory to ``target``; returns its size in bytes."""
        await self.check_access("/", "read", True)
        try:
            return (await export_memory(self._bus, target, timeout=EXPORT_SECONDS)).size
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except (BusError, TrunklineError) as error:
            raise ToolError(
                "Memory could not be exported, or the archive not fetched. Try again.", kind="unavailable"
            ) from error

    async def bring_in(self, source: Path, *, kind: str | None = None, dry_run: bool = False) -> MemoryImport:
        """Bring in an export, or an archive of another system. What the owner alone may change stays as it is."""
        await self.check_access("/", "write", True)
        with ExitStack() as held:
            ready = prepare_import(source, self.importers(), source.parent, kind=kind, block=self._block)
            try:
                archive = await anyio.to_thread.run_sync(held.enter_context, ready)
                return await import_memory(
                    self._bus, archive, actor=self._actor, dry_run=dry_run, scope=self._scope
                )
            except RemoteFault as fault:
                raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
            except TrunklineError as error:
                raise ToolError(
                    f"{error} {error.hint or ''}".replace(f"{source.parent}/", "").strip(),
                    kind="invalid_arguments",
                ) from error
            except (BusError, OSError) as error:
                raise ToolError(
                    "The archive could not be brought in. Try again.", kind="unavailable"
                ) from error

    async def _ask(self, endpoint: Endpoint[Q, A], request: Q, *, timeout: float | None = None) -> A:
        path = getattr(request, "path", None)
        if isinstance(path, str) and endpoint not in SHOWN_IN_PARTS:
            action: Literal["read", "write"] = "write" if endpoint in CHANGES else "read"
            await self.check_access(f"/{path}", action, endpoint not in OF_ONE_FILE)
        return await super()._ask(endpoint, request, timeout=timeout)

    async def _shown_hits(self, hits: Sequence[MemoryHit]) -> Sequence[MemoryHit]:
        """The hits that whoever asks may be told of."""
        shown = [hit for hit in hits if await self._visible(hit.path)]
        to = self.recipient
        if to is None or not (paths := tuple({hit.path for hit in shown if may_hold_learned(hit.path)})):
            return shown
        files = (await self._call(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files
        told = {file.path for file in files if not is_withheld(file.path, file.content, to)}
        return [hit for hit in shown if hit.path not in paths or hit.path in told]

    # Paths ---------------------------------------------------------------------------------------------------

    def _root_path(self, path: str) -> str:
        """The path from the memory root. Raises ToolError for what is private to another actor."""
        whole = root_path(self._block, path)
        if is_private_to_another(whole, self._actor):
            raise ToolError(f"{path} is private to another agent.", kind="permission_denied")
        return whole

    def _writable_root_path(self, path: str) -> str:
        """The whole path, unless it is or holds what is the owner's: no agent lifts its own limits."""
        whole = self._root_path(path)
        parts = [part.casefold() for part in whole.split("/") if part not in ("", ".")]
        holds_settings = parts[:1] in (["blocks"], ["archive"]) and len(parts) < 3
        if is_owner_only(whole) or holds_settings:
            raise ToolError(
                f"{path} is the owner's to change: it says or holds what agents are allowed. Nothing was changed.",
                kind="permission_denied",
            )
        if is_chunk_path(whole):
            raise ToolError(
                f"{path} is kept as a chunk: use remember, link or forget. Nothing was changed.",
                kind="permission_denied",
            )
        return whole

    def _relative(self, path: str) -> str:
        return path_in_block(self._block, path)


_ELSEWHERE = "{} was learned of somebody else or in another block, and is told there alone."


def _paths(file: FileDifference) -> tuple[str, ...]:
    return (file.path,) if file.source is None else (file.path, file.source)


def _placed(when: datetime | None) -> datetime | None:
    """A time with a zone: that of this place when it says none."""
    return None if when is None else when.astimezone()
