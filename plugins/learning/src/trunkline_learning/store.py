"""The store of learned items in memory: read on demand, and changed in one commit that requires the versions it read.

Files that nobody changed are not read again. A write fails with ``WriteConflict`` when somebody else, a person's
editor or another learner, changed one of the files meanwhile: then everything is read anew and merged again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from trunkline import MemoryEntry, MemoryFile, RemoteFault
from trunkline.api.bus import Bus, Scope
from trunkline.api.memory import (
    CALL_SECONDS,
    MEMORY_LIST,
    MEMORY_SEARCH,
    MEMORY_WRITE_MANY,
    ListMemory,
    SearchMemory,
    WriteManyMemory,
    read_files,
)
from trunkline_learning import files
from trunkline_learning.episodes import Episode
from trunkline_learning.errors import WriteConflict
from trunkline_learning.playbook import Playbook, Strategy
from trunkline_learning.turns import Provenance

T = TypeVar("T")

ACTOR = "learner"
"""The author that history names: a system agent whose own derived notes need no approval."""

NEAR = 20
ABSENT = ""
"""The hash of a file that must not be there yet."""


class LearningStore:
    """A worker's access to the learned files. Raises BusError kinds."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._strategies: dict[str, tuple[datetime, MemoryFile]] = {}

    async def text(self, path: str) -> str | None:
        """A file's text; None when it is absent."""
        file = (await self.files([path])).get(path)
        return None if file is None else file.content

    async def files(self, paths: Iterable[str]) -> dict[str, MemoryFile]:
        """The files that are there, by path."""
        return {file.path: file for file in await read_files(self._bus, tuple(paths))}

    async def draft(self, paths: Iterable[str]) -> "Draft":
        """A change in the making, based on these files as they are now."""
        wanted = tuple(paths)
        return Draft(self, wanted, await self.files(wanted))

    async def folders(self) -> tuple[str, ...]:
        """The models that anything was learned with."""
        found = await self._list(files.MODELS)
        return tuple(entry.path.rpartition("/")[2] for entry in found if entry.kind == "folder")

    async def playbook(self, folder: str) -> tuple[Playbook, Mapping[str, str]]:
        """A model's strategies by id, and the hash of each one's file."""
        entries = [
            one for one in await self._list(files.playbook_folder(folder)) if files.is_strategy(one.path)
        ]
        stale = [one for one in entries if self._strategies.get(one.path, (None,))[0] != one.modified_at]
        fresh = await self.files([one.path for one in stale])
        for one in stale:
            if one.path in fresh:
                self._strategies[one.path] = (one.modified_at, fresh[one.path])
        kept = [self._strategies[one.path][1] for one in entries if one.path in self._strategies]
        read = [(file, files.decode(file.content, Strategy)) for file in kept]
        book = {one.id: one for _, one in read if one is not None}
        return book, {one.id: file.hash for file, one in read if one is not None}

    async def episodes_near(self, folder: str, query: str) -> tuple[Episode, ...]:
        """The episodes of a model that have words of the query."""
        request = SearchMemory(query=query, path=files.episodes_folder(folder), limit=NEAR)
        hits = (await self._bus.call(MEMORY_SEARCH, request, timeout=CALL_SECONDS, repeatable=True)).hits
        paths = dict.fromkeys(hit.path for hit in hits if files.is_episode(hit.path))
        found = await self.files(paths)
        read = (files.decode(file.content, Episode) for file in found.values())
        return tuple(one for one in read if one is not None)

    async def episode_days(self, folder: str) -> tuple[tuple[str, datetime], ...]:
        """The files of a model's episodes with the day each is filed under."""
        found = await self._list(files.episodes_folder(folder), recursive=True)
        return tuple((one.path, files.day_of(one.path)) for one in found if files.is_episode(one.path))

    async def commit(self, draft: "Draft", source: Provenance, reason: str) -> None:
        """Write a draft in one commit. Raises WriteConflict; nothing is written then."""
        request = WriteManyMemory(
            files=draft.written, gone=tuple(draft.gone), expected=draft.expected, actor=ACTOR, reason=reason
        )
        try:
            await self._bus.call(MEMORY_WRITE_MANY, request, scope=scope_of(source), timeout=CALL_SECONDS)
        except RemoteFault as fault:
            if fault.code == "write_conflict":
                self._strategies.clear()
                raise WriteConflict from fault
            raise

    async def _list(self, path: str, *, recursive: bool = False) -> tuple[MemoryEntry, ...]:
        try:
            request = ListMemory(path=path, recursive=recursive)
            return (await self._bus.call(MEMORY_LIST, request, timeout=CALL_SECONDS, repeatable=True)).entries
        except RemoteFault as fault:
            if fault.code == "not_found":
                return ()
            raise


class Draft:
    """Files to write and to take out, and the state that they are based on."""

    def __init__(self, store: LearningStore, paths: Iterable[str], files: Mapping[str, MemoryFile]) -> None:
        self._store = store
        self._found = dict(files)
        self.expected = {path: files[path].hash if path in files else ABSENT for path in paths}
        self.written: dict[str, str] = {}
        self.gone: dict[str, None] = {}

    def read(self, path: str, type: type[T]) -> T | None:
        """Return the content of a file in the draft; None when it is absent or invalid."""
        file = self._found.get(path)
        return None if file is None else files.decode(file.content, type)

    def put(self, path: str, value: msgspec.Struct, *, expected: str | None = None) -> None:
        """Write a file. ``expected`` is the hash of one that was not read by the draft itself."""
        text = files.encode(value)
        if path in self._found and self._found[path].content == text:
            return
        self.written[path] = text
        if expected is not None:
            self.expected[path] = expected

    def drop(self, path: str, *, expected: str | None = None) -> None:
        """Take a file out."""
        self.gone[path] = None
        if expected is not None:
            self.expected[path] = expected


def scope_of(source: Provenance) -> Scope:
    """The conversation and turn that history names."""
    return Scope(block=source.block, conversation=source.conversation, turn=source.turn)
