"""The memory operations: files, search, history, blame, diff, revert, export."""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline._util.archives.manifest import ImportGap
from trunkline.contracts.memory.operation import MemoryOperation, change, query, stream
from trunkline_bus import Payload

PassageKind = Literal["file", "document", "turn", "chunk", "fact"]
"""What a search finds: some lines of a file or a document, a message of a conversation, a chunk of memory, a fact."""


class ReadMemory(Payload, frozen=True, kw_only=True, tag="memory.read.v1"):
    """Ask for a file's text, at ``version`` (a commit id) or as it is now."""

    path: str
    version: str | None = None


class MemoryFile(Payload, frozen=True, kw_only=True, tag="memory.file.v1"):
    """A file of memory. ``hash`` identifies the content; ``modified_at`` is when it last changed.

    ``unread`` is a sentence that says why the content cannot be read, which is ``UNREADABLE_RECORDS`` then; else "".
    """

    path: str
    content: str
    hash: str
    modified_at: datetime
    unread: str = ""


UNREADABLE = "\ufffd"
"""Stands for the content of a file that is there and is no text, where others must not suffer from it."""


class ReadManyMemory(Payload, frozen=True, kw_only=True, tag="memory.read-many.v1"):
    """Ask for several small files at once; those that are absent are left out, what is no text is
    ``UNREADABLE_RECORDS``.

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
    """Replace the first occurrence of ``old`` by ``new``. ``expected`` is the hash that the file must have now."""

    path: str
    old: str
    new: str
    actor: str
    expected: str | None = None
    reason: str = ""


class DeleteMemory(Payload, frozen=True, kw_only=True, tag="memory.delete.v1"):
    """Delete a file or a folder; history keeps it. ``expected`` is the hash that a file must have now."""

    path: str
    actor: str
    expected: str | None = None
    reason: str = ""


class MoveMemory(Payload, frozen=True, kw_only=True, tag="memory.move.v1"):
    """Move a file or folder in one commit; the target must be absent. ``expected`` is the hash that a file must
    have now."""

    source: str
    target: str
    actor: str
    expected: str | None = None
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
    """Search the text (or the names) of what lies under ``path``, best first.

    Everything further narrows the search of text: ``kinds`` of passages (``file``, ``document``, ``turn`` of a
    conversation, ``chunk``, ``fact``), ``tags`` that it must have (all), ``speaker`` (a name or a role), when it was
    said (from ``since`` to before ``until``), ``conversation`` (its id), and how sure it must be at least
    (``min_confidence``, 0 to 1; what has no confidence passes). ``asked_at`` is what "last Tuesday" is seen from: now
    without it, or the end of the conversation when that is named and long past.

    Results of tools that look into memory are never found; questions that memory was searched for and the learner's
    episodes only where ``kinds`` are named.
    """

    query: str
    path: str = ""
    kind: Literal["content", "filename"] = "content"
    limit: int = 10
    kinds: tuple[PassageKind, ...] = ()
    tags: tuple[str, ...] = ()
    speaker: str = ""
    since: datetime | None = None
    until: datetime | None = None
    conversation: str = ""
    min_confidence: float = 0.0
    asked_at: datetime | None = None


_ADDING = frozenset(("words", "neighbours", "meaning", "link", "time"))


class HitExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """A signal that speaks for a hit.

    These add their ``weight`` to the score: ``words``, ``neighbours`` (words that stand only in what was said around
    it), ``meaning``, ``link``, ``time``. These multiply it: ``tags``, ``speaker``, ``question``, ``date``, ``recency``,
    ``confidence``, ``talk``. ``detail`` is for people: the words that were found, the tag, the link.
    """

    signal: str
    weight: float
    detail: str = ""

    @property
    def is_additive(self) -> bool:
        """Report whether it adds to the score; otherwise it multiplies it."""
        return self.signal in _ADDING


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """A place where the query was found; ``line`` counts from 1, ``context`` is the text around it.

    ``id`` is that of the chunk or message; ``page`` counts from 1, None where there are no pages; ``at`` is when it was
    said. ``score`` is the sum of the signals in ``why`` that add, times those that multiply.
    """

    path: str
    line: int
    content: str
    context: str
    score: float
    kind: PassageKind = "file"
    id: str = ""
    page: int | None = None
    at: datetime | None = None
    speaker: str = ""
    confidence: float | None = None
    conversation: str = ""
    why: tuple[HitExplanation, ...] = ()


class MemoryHits(Payload, frozen=True, kw_only=True, tag="memory.hits.v1"):
    """The hits of a search, best first. ``vectors`` is the share of passages (0 to 1) that can be found by their
    meaning: None without an embedder, when words alone are searched.
    """

    hits: tuple[MemoryHit, ...] = ()
    vectors: float | None = None

    @property
    def searched(self) -> str:
        """The way of the search, as a sentence."""
        return describe_search(self.vectors)


def describe_search(vectors: float | None) -> str:
    """Describe in a sentence how far a search goes by meaning, from the share of passages (0 to 1) that have
    vectors.
    """
    if vectors is None:
        return "Words alone were searched: [memory] embedder names nothing."
    if vectors == 0:
        return "Words alone were searched: there are no vectors to compare (trunkline memory stats)."
    if vectors == 1:
        return "Words and meaning were searched."
    missing = f"{max(0.01, 1 - vectors):.0%} of all passages have no vector yet"
    return f"Words and meaning were searched; {missing}, and words alone find them."


class ListMemory(Payload, frozen=True, kw_only=True, tag="memory.list.v1"):
    """Ask for the names under ``path``; with ``unread`` also for what lies there, however deep, and is not read."""

    path: str = ""
    recursive: bool = False
    unread: bool = False


class MemoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A name under a folder; ``size`` is in bytes."""

    path: str
    kind: Literal["file", "folder"]
    size: int = 0
    modified_at: datetime


class UnreadEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a folder that memory does not read, and ``why``, as a sentence.

    ``kind``: a ``file`` or ``folder`` by a name that no path may hold, or that cannot be opened; ``other`` is a link or
    something special.
    """

    path: str
    kind: Literal["file", "folder", "other"]
    why: str


class MemoryListing(Payload, frozen=True, kw_only=True, tag="memory.listing.v1"):
    """The names, sorted; ``unread`` where it was asked for."""

    entries: tuple[MemoryEntry, ...] = ()
    unread: tuple[UnreadEntry, ...] = ()


class MemoryHistory(Payload, frozen=True, kw_only=True, tag="memory.history.v1"):
    """Ask for a path's changes, newest first."""

    path: str
    limit: int = 50


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One commit that touched the path, with the content before it (None: the file was absent or is not text).

    ``conversation`` and ``turn`` are those it was made in, if any.
    """

    version: str
    message: str
    author: str
    timestamp: datetime
    previous: str | None = None
    conversation: str | None = None
    turn: str | None = None


class MemoryChanges(Payload, frozen=True, kw_only=True, tag="memory.changes.v1"):
    """The changes, newest first."""

    changes: tuple[MemoryChange, ...] = ()


class BlameMemory(Payload, frozen=True, kw_only=True, tag="memory.blame.v1"):
    """Ask who wrote each line of a file, at ``version`` or as of the last commit.

    Lines count from 1; ``last`` None is the last line. With ``mainline`` it is who brought a line into this memory:
    what came with an import is the importer's, and what was moved the mover's, whatever the other history says.
    """

    path: str
    version: str | None = None
    first: int = 1
    last: int | None = None
    mainline: bool = False


class BlamedLines(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that follow each other and were written by one commit; ``first`` counts from 1.

    ``author`` is the actor; ``conversation`` and ``turn`` are those it was made in, if any.
    """

    first: int
    lines: tuple[str, ...]
    version: str
    author: str
    conversation: str | None = None
    turn: str | None = None
    message: str = ""
    timestamp: datetime


class MemoryBlame(Payload, frozen=True, kw_only=True, tag="memory.blamed.v1"):
    """Who wrote each line of a file of ``version``, in the order of the lines."""

    path: str
    version: str
    spans: tuple[BlamedLines, ...] = ()


class DiffMemory(Payload, frozen=True, kw_only=True, tag="memory.diff.v1"):
    """Ask what differs at ``path`` (a file or folder, "" is everything) between two versions.

    ``new`` None is the last commit. ``old`` None is the state before the last change of the path up to ``new``: what
    that change did.
    """

    path: str = ""
    old: str | None = None
    new: str | None = None


DifferenceKind = Literal["added", "changed", "deleted", "moved"]


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs, and how many lines came and went; ``source`` is where a moved one was."""

    path: str
    kind: DifferenceKind
    added: int = 0
    removed: int = 0
    source: str | None = None


class MemoryDifference(Payload, frozen=True, kw_only=True, tag="memory.difference.v1"):
    """The differences between two versions. ``old`` "" is before the first; ``text`` is a unified diff, without
    some of the files when it would be too long (``whole`` is False then).
    """

    path: str
    old: str
    new: str
    files: tuple[FileDifference, ...] = ()
    text: str = ""
    whole: bool = True


class RevertMemory(Payload, frozen=True, kw_only=True, tag="memory.revert.v1"):
    """Take a change back, as a change of its own: the last of ``path``, or what ``version`` did there ("": all of it).

    With ``to`` the path is brought back to what it was at that version instead.
    """

    path: str
    actor: str
    version: str | None = None
    to: str | None = None
    reason: str = ""


class MemoryReverted(Payload, frozen=True, kw_only=True, tag="memory.reverted.v1"):
    """The change was taken back by ``version``. ``undone`` is the version that is taken back, or gone back to."""

    paths: tuple[str, ...]
    version: str
    undone: str


class CheckMemory(Payload, frozen=True, kw_only=True, tag="memory.examine.v1"):
    """Check whether the memory root is intact. With ``repair`` False nothing is changed."""

    repair: bool = True


class MemoryFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was checked; ``repaired`` says that it was damaged and no longer is. ``id`` is stable."""

    id: str
    status: Literal["ok", "repaired", "warning", "error"]
    summary: str
    hint: str = ""


class MemoryCheckReport(Payload, frozen=True, kw_only=True, tag="memory.examined.v1"):
    """The findings, in order."""

    findings: tuple[MemoryFinding, ...] = ()


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


class ImportMemory(Payload, frozen=True, kw_only=True, tag="memory.import.v1"):
    """Bring in the archive that lies as ``object`` in the ``imports`` bucket.

    ``merge`` keeps what this memory has and adds what the other has; ``restore`` makes it what the other was. Both
    keep everything in history. Only with ``settings`` may it change what agents are allowed, and what is another
    agent's own. With ``dry_run`` nothing is changed.
    """

    object: str
    actor: str
    mode: Literal["merge", "restore"] = "merge"
    settings: bool = False
    dry_run: bool = False


class ImportProgress(Payload, frozen=True, kw_only=True, tag="memory.import-progress.v1"):
    """The progress of an import: ``unpacking`` in bytes, ``checking`` and ``packing`` in objects, ``writing`` in
    files.
    """

    stage: str
    done: int = 0
    total: int = 0


class ImportConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that both sides changed. The other's text is in history at ``version``, or where ``what`` says."""

    path: str
    what: str
    version: str


class MemoryImport(Payload, frozen=True, kw_only=True, tag="memory.import-done.v1"):
    """The result of an import: counts of files, the conversations that were ``joined``, what a person should look
    at.

    ``version`` is the commit it ended at, ``commits`` how many came along as history. ``gaps`` are what the other
    memory counts on and what is not here.
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

    @property
    def idle(self) -> bool:
        """Report whether nothing was to be done."""
        return not (self.commits or self.added or self.changed or self.removed or self.joined)


MEMORY_READ = query(
    "read", ReadMemory, MemoryFile, "A file's text.", ("monitor", "tools", "operator"), scope="file"
)
MEMORY_READ_MANY = query(
    "read-many",
    ReadManyMemory,
    MemoryFiles,
    "Several small files.",
    ("gateway", "monitor", "tools", "operator"),
)
MEMORY_WRITE = change(
    "write", WriteMemory, MemoryChanged, "Write a file.", ("monitor", "tools"), scope="file"
)
MEMORY_WRITE_MANY = change(
    "write-many", WriteManyMemory, MemoryChanged, "Write files in one commit.",
    ("gateway", "monitor", "tools", "operator"),
)  # fmt: skip
MEMORY_EDIT = change(
    "edit", EditMemory, MemoryChanged, "Replace text in a file.", ("monitor", "tools"), scope="file"
)
MEMORY_DELETE = change(
    "delete", DeleteMemory, MemoryChanged, "Delete a file or folder.",
    ("gateway", "monitor", "tools", "operator"), scope="tree",
)  # fmt: skip
MEMORY_MOVE = change("move", MoveMemory, MemoryChanged, "Move a file or folder.", ("gateway",))
MEMORY_SEARCH = query(
    "search",
    SearchMemory,
    MemoryHits,
    "Search text or names.",
    ("monitor", "tools", "operator"),
    scope="reply",
)
MEMORY_LIST = query(
    "list", ListMemory, MemoryListing, "Names under a folder.",
    ("gateway", "monitor", "tools", "operator"), scope="reply",
)  # fmt: skip
MEMORY_HISTORY = query(
    "history", MemoryHistory, MemoryChanges, "Changes of a path, with previous states.",
    ("gateway", "monitor", "tools", "operator"), scope="tree",
)  # fmt: skip
MEMORY_BLAME = query(
    "blame",
    BlameMemory,
    MemoryBlame,
    "The commit of each line of a file.",
    ("monitor", "tools", "operator"),
    scope="file",
)
MEMORY_DIFF = query(
    "diff", DiffMemory, MemoryDifference, "The difference between two versions.",
    ("monitor", "tools", "operator"), scope="tree",
)  # fmt: skip
MEMORY_REVERT = change(
    "revert", RevertMemory, MemoryReverted, "Revert a change, or restore a version.",
    ("monitor", "tools", "operator"), scope="tree",
)  # fmt: skip
MEMORY_CHECK = query(
    "examine",
    CheckMemory,
    MemoryCheckReport,
    "Check memory for damage, and repair it.",
    ("operator",),
    concurrency=1,
)
MEMORY_EXPORT = query(
    "export", ExportMemory, MemoryExport, "Everything, in one archive.", ("tools", "operator"), concurrency=2
)
MEMORY_IMPORT: MemoryOperation[ImportMemory, ImportProgress | MemoryImport] = stream(
    "import", ImportMemory, ImportProgress | MemoryImport,  # type: ignore[arg-type]
    "Import an archive: the progress, then the report.", ("tools", "operator"),
)  # fmt: skip
