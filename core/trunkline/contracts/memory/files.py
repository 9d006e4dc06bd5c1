"""The operations on files of memory: read, write, edit, delete, move and list."""

from datetime import datetime
from typing import Literal

import msgspec
from msgspec.structs import replace

from trunkline.contracts.memory.access import CallerAccess
from trunkline.contracts.memory.operation import change, query
from trunkline_bus import Payload


class ReadMemory(Payload, frozen=True, kw_only=True, tag="memory.read.v1"):
    """Read a file's text at ``version`` (a commit id); None reads the current text."""

    path: str
    version: str | None = None


class MemoryFile(Payload, frozen=True, kw_only=True, tag="memory.file.v1"):
    """The content and hash of a file of memory.

    ``hash`` identifies the content. ``modified_at`` is when the file was last changed. If the content cannot be read,
    ``unread`` is a sentence that says why and ``content`` is ``UNREADABLE`` (U+FFFD); otherwise ``unread`` is "".
    """

    path: str
    content: str
    hash: str
    modified_at: datetime
    unread: str = ""


UNREADABLE = "\ufffd"
"""The content that a reply has in place of a file that exists but is not readable text. Other files of the same reply
are not affected.
"""


class ReadManyMemory(Payload, frozen=True, kw_only=True, tag="memory.read-many.v1"):
    """Read several small files in one request.

    The reply leaves out files that do not exist. A file that is not text has the content ``UNREADABLE``. Of each
    file ``max_characters`` are returned at most; ``hash`` is always the hash of the whole file.
    """

    paths: tuple[str, ...]
    max_characters: int | None = None


class MemoryFiles(Payload, frozen=True, kw_only=True, tag="memory.files.v1"):
    """The reply to ``ReadManyMemory``: the requested files that exist."""

    files: tuple[MemoryFile, ...] = ()


class WriteMemory(Payload, frozen=True, kw_only=True, tag="memory.write.v1"):
    """Write a whole file.

    ``expected`` is the hash that the file must have before the write: "" requires that the file does not exist, None
    checks nothing.
    """

    path: str
    content: str
    actor: str
    expected: str | None = None
    reason: str = ""


class EditMemory(Payload, frozen=True, kw_only=True, tag="memory.edit.v1"):
    """Replace the first occurrence of ``old`` in a file by ``new``.

    ``expected`` is the hash that the file must have before the edit; None checks nothing.
    """

    path: str
    old: str
    new: str
    actor: str
    expected: str | None = None
    reason: str = ""


class DeleteMemory(Payload, frozen=True, kw_only=True, tag="memory.delete.v1"):
    """Delete a file or a folder. History keeps the content.

    ``expected`` is the hash that the file must have before the deletion; None checks nothing.
    """

    path: str
    actor: str
    expected: str | None = None
    reason: str = ""


class MoveMemory(Payload, frozen=True, kw_only=True, tag="memory.move.v1"):
    """Move a file or a folder in one commit. The target must not exist.

    ``expected`` is the hash that the file must have before the move; None checks nothing.
    """

    source: str
    target: str
    actor: str
    expected: str | None = None
    reason: str = ""


class WriteManyMemory(Payload, frozen=True, kw_only=True, tag="memory.write-many.v1"):
    """Write several files and delete the files in ``gone``, all in one commit. Either every change is made or none.

    ``expected`` maps a path to the hash that its file must have before the commit ("" requires that the file does not
    exist). It may name files that the request does not write.
    """

    files: dict[str, str]
    actor: str
    reason: str = ""
    gone: tuple[str, ...] = ()
    expected: dict[str, str] = {}


class MemoryChanged(Payload, frozen=True, kw_only=True, tag="memory.changed.v1"):
    """A change of memory that is committed as ``version``: the reply to the request, and the event that memory
    publishes after each commit.
    """

    paths: tuple[str, ...]
    version: str
    actor: str = ""


class ListMemory(Payload, frozen=True, kw_only=True, tag="memory.list.v1"):
    """List the names under ``path``.

    With ``recursive`` the reply includes all folders below. With ``unread`` the reply also lists the entries below
    ``path``, at any depth, that memory does not read.
    """

    path: str = ""
    recursive: bool = False
    unread: bool = False


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder in a listing. ``size`` is in bytes."""

    path: str
    kind: Literal["file", "folder"]
    size: int = 0
    modified_at: datetime


class UnreadEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a folder that memory does not read. ``why`` is the reason, as a sentence.

    ``kind`` is ``file`` or ``folder`` for an entry that has a name which paths may not have, or that cannot be opened.
    It is ``other`` for a link or a special file.
    """

    path: str
    kind: Literal["file", "folder", "other"]
    why: str


class MemoryListing(Payload, frozen=True, kw_only=True, tag="memory.listing.v1"):
    """The reply to ``ListMemory``: the entries, sorted by name. ``unread`` is empty unless the request asked for it."""

    entries: tuple[MemoryEntry, ...] = ()
    unread: tuple[UnreadEntry, ...] = ()


async def _shown_file(access: CallerAccess, request: ReadMemory, reply: MemoryFile) -> MemoryFile:
    if access.withholds(reply.path, reply.content):
        raise access.withheld(request.path)
    return reply


async def _without_unread(access: CallerAccess, request: ListMemory) -> ListMemory:
    """Entries that memory does not read are for guards only."""
    return replace(request, unread=False)


async def _shown_entries(access: CallerAccess, request: ListMemory, reply: MemoryListing) -> MemoryListing:
    return MemoryListing(
        entries=tuple([entry for entry in reply.entries if await access.is_visible(entry.path)])
    )


MEMORY_READ = query(
    "read", ReadMemory, MemoryFile, "A file's text.",
    ("gateway", "monitor", "tools", "memory", "operator"), extent="file", filter=_shown_file,
)  # fmt: skip
MEMORY_READ_MANY = query(
    "read-many",
    ReadManyMemory,
    MemoryFiles,
    "Several small files.",
    ("gateway", "monitor", "tools", "operator"),
)
MEMORY_WRITE = change(
    "write", WriteMemory, MemoryChanged, "Write a file.", ("monitor", "tools"), extent="file"
)
MEMORY_WRITE_MANY = change(
    "write-many", WriteManyMemory, MemoryChanged, "Write files in one commit.",
    ("gateway", "monitor", "tools", "operator"),
)  # fmt: skip
MEMORY_EDIT = change(
    "edit", EditMemory, MemoryChanged, "Replace text in a file.", ("monitor", "tools"), extent="file"
)
MEMORY_DELETE = change(
    "delete", DeleteMemory, MemoryChanged, "Delete a file or folder.",
    ("gateway", "monitor", "tools", "operator"), extent="tree",
)  # fmt: skip
MEMORY_MOVE = change("move", MoveMemory, MemoryChanged, "Move a file or folder.", ("gateway",))
MEMORY_LIST = query(
    "list", ListMemory, MemoryListing, "Names under a folder.",
    ("gateway", "monitor", "tools", "operator"),
    extent="reply", check=_without_unread, filter=_shown_entries,
)  # fmt: skip
