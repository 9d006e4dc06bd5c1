"""The schemas of memory: files, their history, search and chunks."""

from datetime import datetime
from typing import Annotated

import msgspec

from trunkline._util.archives.manifest import ImportGap
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.memory.chunk import Chunk
from trunkline.contracts.memory.chunks import LinkedChunk
from trunkline.contracts.memory.files import MemoryEntry
from trunkline.contracts.memory.history import BlamedLines, FileDifference
from trunkline.contracts.memory.search import MemoryHit
from trunkline.contracts.memory.transfer import ImportConflict
from trunkline.workers.gateway.http.schemas.schema_base import In, Out


class MemoryFolder(Out, frozen=True, kw_only=True):
    """The names under a folder, sorted. Paths are relative to the memory root."""

    entries: tuple[MemoryEntry, ...]


class MemoryText(Out, frozen=True, kw_only=True):
    """A file of memory. ``hash`` identifies the content, for ``expected``."""

    path: str
    content: str
    hash: str
    modified_at: datetime


class MemoryWrite(In, frozen=True, kw_only=True):
    """The whole text of a file. ``expected`` is the hash that the file must still have, "" if it must not exist; null
    replaces whatever is there.
    """

    path: str
    content: str
    expected: str | None = None


class MemoryMove(In, frozen=True, kw_only=True):
    """A file or folder to move. There must be nothing at ``target``."""

    source: str
    target: str
    expected: str | None = None


class MemoryDraft(In, frozen=True, kw_only=True):
    """The text that a file would get."""

    path: str
    content: str


class MemoryPreview(Out, frozen=True, kw_only=True):
    """The change that a write would make, as a diff. ``hash`` is that of the present file, "" if there is none: send it
    as ``expected`` with the write.
    """

    detail: ApprovalDetail
    hash: str


class MemoryCommit(Out, frozen=True, kw_only=True):
    """The change is committed as ``version``."""

    version: str
    paths: tuple[str, ...] = ()


class MemorySearchResult(Out, frozen=True, kw_only=True):
    """The hits, the best first. ``why`` of a hit has the signals of its score. ``searched`` says in a sentence how the
    search worked.
    """

    hits: tuple[MemoryHit, ...]
    searched: str


class MemoryRevision(Out, frozen=True, kw_only=True):
    """A commit that changed a path. ``conversation`` and ``turn`` name the turn that made the change, if any."""

    version: str
    message: str
    author: str
    timestamp: datetime
    conversation: str | None = None
    turn: str | None = None


class MemoryRevisions(Out, frozen=True, kw_only=True):
    """The commits that changed a path, the newest first."""

    revisions: tuple[MemoryRevision, ...]


class MemoryDiff(Out, frozen=True, kw_only=True):
    """The differences between two versions. ``old`` "" is the state before the first commit. ``text`` is a unified
    diff; with ``whole`` false it leaves out some files.
    """

    path: str
    old: str
    new: str
    files: tuple[FileDifference, ...]
    text: str
    whole: bool


class MemoryAuthors(Out, frozen=True, kw_only=True):
    """The lines of a file at ``version``, with the commit and the turn that wrote each of them."""

    path: str
    version: str
    spans: tuple[BlamedLines, ...]


class MemoryRevert(In, frozen=True, kw_only=True):
    """A change to undo by a new commit: the last one of ``path``, or that of ``version`` there. With ``to`` the path is
    restored to that version. The path "" stands for all files that ``version`` changed.
    """

    path: str = ""
    version: str | None = None
    to: str | None = None


class MemoryRestored(Out, frozen=True, kw_only=True):
    """The new commit, and the version that was undone or restored."""

    version: str
    undone: str
    paths: tuple[str, ...]


class ChunkList(Out, frozen=True, kw_only=True):
    """A page of chunks, the newest first. ``links`` of a chunk are those that somebody made. Its metadata names the
    turn that it was learned from (``turn_id``). ``total`` counts all that match.
    """

    chunks: tuple[Chunk, ...]
    total: int


class ChunkNeighbours(Out, frozen=True, kw_only=True):
    """The links of a chunk in both directions with the chunks at their other ends, the strongest first."""

    links: tuple[LinkedChunk, ...]


class MemoryDocumentForm(In, frozen=True, kw_only=True):
    """The form of ``POST /api/memory/documents``: a document of a type that a reader of a plugin reads, or text."""

    file: Annotated[str, msgspec.Meta(extra_json_schema={"format": "binary"})]


class MemoryDocument(Out, frozen=True, kw_only=True):
    """A document in memory. ``added`` is false if memory had the same document already. ``title`` and ``pages`` are
    those of the document, if it has any.
    """

    path: str
    added: bool
    title: str = ""
    pages: int | None = None


class MemoryImported(Out, frozen=True, kw_only=True):
    """The result of an import, or with ``dry_run`` what it would be. ``conflicts`` are files that a person should look
    at, ``gaps`` what the archive needs and this installation lacks. ``added``, ``changed`` and ``removed`` count files.
    """

    system: str
    version: str
    commits: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    joined: tuple[str, ...] = ()
    conflicts: tuple[ImportConflict, ...] = ()
    gaps: tuple[ImportGap, ...] = ()
    dry_run: bool = False
