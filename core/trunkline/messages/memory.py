"""The memory operations (PA-F8, PA-F9): read, write, edit, delete, search, list, history, export."""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline_bus import Payload


class ReadMemory(Payload, frozen=True, kw_only=True, tag="memory.read.v1"):
    """Ask for a file's text, at ``version`` (a commit id) or as it is now."""

    path: str
    version: str | None = None


class MemoryFile(Payload, frozen=True, kw_only=True, tag="memory.file.v1"):
    """A file of memory. ``hash`` identifies the content; ``modified_at`` is when it last changed."""

    path: str
    content: str
    hash: str
    modified_at: datetime


UNREADABLE = "\ufffd"
"""Stands for the content of a file that is there and is no text, where others must not suffer from it."""


class ReadManyMemory(Payload, frozen=True, kw_only=True, tag="memory.read-many.v1"):
    """Ask for several small files at once; those that are absent are left out, what is no text is ``UNREADABLE``.

    ``letters`` is how much of each is wanted at most; ``hash`` is that of the whole all the same.
    """

    paths: tuple[str, ...]
    letters: int | None = None


class MemoryFiles(Payload, frozen=True, kw_only=True, tag="memory.files.v1"):
    """The files that exist."""

    files: tuple[MemoryFile, ...] = ()


class WriteMemory(Payload, frozen=True, kw_only=True, tag="memory.write.v1"):
    """Write a whole file. ``expected`` is the hash it must have now ("" = must be absent; None = whatever)."""

    path: str
    content: str
    actor: str
    expected: str | None = None
    reason: str = ""


class EditMemory(Payload, frozen=True, kw_only=True, tag="memory.edit.v1"):
    """Replace the first occurrence of ``old`` by ``new``."""

    path: str
    old: str
    new: str
    actor: str
    reason: str = ""


class DeleteMemory(Payload, frozen=True, kw_only=True, tag="memory.delete.v1"):
    """Delete a file or a folder; history keeps it."""

    path: str
    actor: str
    reason: str = ""


class MoveMemory(Payload, frozen=True, kw_only=True, tag="memory.move.v1"):
    """Move a file or folder in one commit; the target must be absent."""

    source: str
    target: str
    actor: str
    reason: str = ""


class WriteManyMemory(Payload, frozen=True, kw_only=True, tag="memory.write-many.v1"):
    """Write several files in one commit, and take those out that are named in ``gone``: all of it or nothing.

    ``expected`` maps paths, written or not, to the hash that each must have now ("" = must be absent).
    """

    files: dict[str, str]
    actor: str
    reason: str = ""
    gone: tuple[str, ...] = ()
    expected: dict[str, str] = {}


class MemoryChanged(Payload, frozen=True, kw_only=True, tag="memory.changed.v1"):
    """The change is committed as ``version``; also the fact that is published for those who watch."""

    paths: tuple[str, ...]
    version: str
    actor: str = ""


class SearchMemory(Payload, frozen=True, kw_only=True, tag="memory.search.v1"):
    """Search the text (or the names) of what lies under ``path``, best first."""

    query: str
    path: str = ""
    kind: Literal["content", "filename"] = "content"
    limit: int = 10


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the query was found; ``line`` counts from 1, ``context`` is the text around it."""

    path: str
    line: int
    content: str
    context: str
    score: float


class MemoryHits(Payload, frozen=True, kw_only=True, tag="memory.hits.v1"):
    """What was found, best first."""

    hits: tuple[MemoryHit, ...] = ()


class ListMemory(Payload, frozen=True, kw_only=True, tag="memory.list.v1"):
    """Ask for the names under ``path``."""

    path: str = ""
    recursive: bool = False


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A name under a folder; ``size`` is in bytes."""

    path: str
    kind: Literal["file", "folder"]
    size: int = 0
    modified_at: datetime


class MemoryListing(Payload, frozen=True, kw_only=True, tag="memory.listing.v1"):
    """The names, sorted."""

    entries: tuple[MemoryEntry, ...] = ()


class MemoryHistory(Payload, frozen=True, kw_only=True, tag="memory.history.v1"):
    """Ask for a path's changes, newest first."""

    path: str
    limit: int = 50


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One commit that touched the path, with the content before it (None: the file was absent or is not text)."""

    version: str
    message: str
    author: str
    timestamp: datetime
    previous: str | None = None


class MemoryChanges(Payload, frozen=True, kw_only=True, tag="memory.changes.v1"):
    """The changes, newest first."""

    changes: tuple[MemoryChange, ...] = ()


class ExportMemory(Payload, frozen=True, kw_only=True, tag="memory.export.v1"):
    """Write an archive of everything, history included, to the bus's object store.

    ``derived`` takes the search index along, which nobody needs: it is made anew.
    """

    derived: bool = False


class MemoryExport(Payload, frozen=True, kw_only=True, tag="memory.export-done.v1"):
    """The archive: its object name in the ``exports`` bucket, and its size in bytes."""

    object: str
    size: int
    files: int
