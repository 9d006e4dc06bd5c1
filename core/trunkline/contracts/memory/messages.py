"""The messages of memory's file operations: read, write, search, history, blame, diff, revert, check, export and
import.
"""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline._util.archives.manifest import ImportGap
from trunkline.contracts.memory.operation import MemoryOperation, change, query, stream
from trunkline_bus import Payload

PassageKind = Literal["file", "document", "turn", "chunk", "fact"]
"""The kind of a search hit: ``file`` and ``document`` are lines of one, ``turn`` is a message of a conversation,
``chunk`` is a chunk of memory, ``fact`` is a chunk of the type ``fact``.
"""


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

    The reply leaves out files that do not exist. A file that is not text has the content ``UNREADABLE``. ``letters``
    limits the number of characters returned of each file; ``hash`` is always the hash of the whole file.
    """

    paths: tuple[str, ...]
    letters: int | None = None


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


class SearchMemory(Payload, frozen=True, kw_only=True, tag="memory.search.v1"):
    """Search the text or, with ``kind`` ``filename``, the names of files under ``path``. The best hits come first.

    The other fields restrict a search of text: ``kinds`` lists the kinds of passages to find. A hit must have all of
    ``tags``. ``speaker`` is a name or a role. ``since`` (inclusive) and ``until`` (exclusive) limit when the passage
    was said. ``conversation`` is the id of a conversation. ``min_confidence`` (0 to 1) is the lowest confidence of a
    hit; passages without a confidence pass. Dates in the query, such as "last Tuesday", are relative to ``asked_at``.
    Without it they are relative to the present, or to the end of ``conversation`` if that ended long ago.

    A search never returns the results of tools that read memory. It returns the queries of earlier searches of memory,
    and the learner's episodes, only if ``kinds`` is not empty.
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
    """A signal that contributes to the score of a hit.

    The ``weight`` of these signals is added to the score: ``words``, ``neighbours`` (words that occur only in the
    messages around the hit), ``meaning``, ``link``, ``time``. The ``weight`` of these multiplies the score: ``tags``,
    ``speaker``, ``question``, ``date``, ``recency``, ``confidence``, ``talk``. ``detail`` is text for people: the words
    found, the tag or the link.
    """

    signal: str
    weight: float
    detail: str = ""

    @property
    def is_additive(self) -> bool:
        """Report whether the weight is added to the score; otherwise it multiplies the score."""
        return self.signal in _ADDING


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that matches a search.

    ``line`` counts from 1. ``context`` is the text around the hit. ``id`` is the id of the chunk or message. ``page``
    counts from 1 and is None for files without pages. ``at`` is when the passage was said. ``score`` is the sum of the
    additive signals in ``why``, times its multiplying signals.
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
    """The hits of a search, the best first.

    ``vectors`` is the share (0 to 1) of passages that a search by meaning can find. It is None without an embedder;
    then the search compared words only.
    """

    hits: tuple[MemoryHit, ...] = ()
    vectors: float | None = None

    @property
    def searched(self) -> str:
        """A sentence that says how the search worked."""
        return describe_search(self.vectors)


def describe_search(vectors: float | None) -> str:
    """Describe in a sentence how much of memory was searched by meaning.

    ``vectors`` is the share (0 to 1) of passages that have vectors; None means that there is no embedder.
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


class MemoryHistory(Payload, frozen=True, kw_only=True, tag="memory.history.v1"):
    """List the changes of a path, the newest first."""

    path: str
    limit: int = 50


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that changed the path.

    ``previous`` is the content before the commit; it is None if the file did not exist or was not text.
    ``conversation`` and ``turn`` name the conversation and turn that made the change, if any.
    """

    version: str
    message: str
    author: str
    timestamp: datetime
    previous: str | None = None
    conversation: str | None = None
    turn: str | None = None


class MemoryChanges(Payload, frozen=True, kw_only=True, tag="memory.changes.v1"):
    """The reply to ``MemoryHistory``: the changes, the newest first."""

    changes: tuple[MemoryChange, ...] = ()


class BlameMemory(Payload, frozen=True, kw_only=True, tag="memory.blame.v1"):
    """Find the commit that wrote each line of a file.

    ``version`` is a commit id; None is the last commit. Lines count from 1; ``last`` None is the last line. With
    ``mainline`` the reply names the commit that brought each line into this memory: an imported line belongs to the
    import and a moved line to the move, whatever the imported history says.
    """

    path: str
    version: str | None = None
    first: int = 1
    last: int | None = None
    mainline: bool = False


class BlamedLines(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive lines that one commit wrote. ``first`` is the number of the first line and counts from 1.

    ``author`` is the actor of the commit. ``conversation`` and ``turn`` name the conversation and turn that made the
    commit, if any.
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
    """The reply to ``BlameMemory``: the commits of the lines of a file at ``version``, in the order of the lines."""

    path: str
    version: str
    spans: tuple[BlamedLines, ...] = ()


class DiffMemory(Payload, frozen=True, kw_only=True, tag="memory.diff.v1"):
    """Compare two versions of ``path``, which is a file or a folder ("" is all of memory).

    ``new`` None is the last commit. ``old`` None is the version before the last change of the path up to ``new``; the
    reply then shows what that change did.
    """

    path: str = ""
    old: str | None = None
    new: str | None = None


DifferenceKind = Literal["added", "changed", "deleted", "moved"]


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that differs between two versions. ``added`` and ``removed`` count lines; ``source`` is the former path of
    a moved file.
    """

    path: str
    kind: DifferenceKind
    added: int = 0
    removed: int = 0
    source: str | None = None


class MemoryDifference(Payload, frozen=True, kw_only=True, tag="memory.difference.v1"):
    """The differences between two versions.

    ``old`` "" is the state before the first commit. ``text`` is a unified diff. If the diff would be too long, ``text``
    leaves out some files and ``whole`` is False.
    """

    path: str
    old: str
    new: str
    files: tuple[FileDifference, ...] = ()
    text: str = ""
    whole: bool = True


class RevertMemory(Payload, frozen=True, kw_only=True, tag="memory.revert.v1"):
    """Revert a change of ``path`` by a new commit.

    ``version`` names the change to revert; None reverts the last change of ``path``. The path "" means all files that
    ``version`` changed. With ``to``, the path is restored to its state at that version instead.
    """

    path: str
    actor: str
    version: str | None = None
    to: str | None = None
    reason: str = ""


class MemoryReverted(Payload, frozen=True, kw_only=True, tag="memory.reverted.v1"):
    """The reply to ``RevertMemory``. ``version`` is the new commit. ``undone`` is the version that was reverted, or the
    version that was restored.
    """

    paths: tuple[str, ...]
    version: str
    undone: str


class CheckMemory(Payload, frozen=True, kw_only=True, tag="memory.examine.v1"):
    """Check the memory root for damage. With ``repair`` damage is repaired; without it nothing is changed."""

    repair: bool = True


class MemoryFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check. ``repaired`` means that damage was found and repaired. ``id`` identifies the check and
    does not change between versions.
    """

    id: str
    status: Literal["ok", "repaired", "warning", "error"]
    summary: str
    hint: str = ""


class MemoryCheckReport(Payload, frozen=True, kw_only=True, tag="memory.examined.v1"):
    """The reply to ``CheckMemory``: the findings, in the order of the checks."""

    findings: tuple[MemoryFinding, ...] = ()


class ExportMemory(Payload, frozen=True, kw_only=True, tag="memory.export.v1"):
    """Write an archive of all of memory, with its history, to the bus's object store.

    ``derived`` includes the search index. An import does not need the index, because memory can rebuild it.
    """

    derived: bool = False


class MemoryExport(Payload, frozen=True, kw_only=True, tag="memory.export-done.v1"):
    """The reply to ``ExportMemory``. ``object`` is the name of the archive in the bucket ``exports``; ``size`` is in
    bytes.
    """

    object: str
    size: int
    files: int


class ImportMemory(Payload, frozen=True, kw_only=True, tag="memory.import.v1"):
    """Import the archive ``object`` of the bucket ``imports``.

    ``merge`` keeps the content of this memory and adds the content of the archive. ``restore`` makes this memory equal
    to the archive. Both modes keep all earlier states in history. Without ``settings`` an import changes neither the
    permissions of agents nor the private files of another agent. With ``dry_run`` nothing is changed.
    """

    object: str
    actor: str
    mode: Literal["merge", "restore"] = "merge"
    settings: bool = False
    dry_run: bool = False


class ImportProgress(Payload, frozen=True, kw_only=True, tag="memory.import-progress.v1"):
    """The progress of an import. The unit of ``done`` and ``total`` depends on ``stage``: bytes for ``unpacking``,
    objects for ``checking`` and ``packing``, files for ``writing``.
    """

    stage: str
    done: int = 0
    total: int = 0


class ImportConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that both memories changed. History has the imported text at ``version``, unless ``what`` names another
    place.
    """

    path: str
    what: str
    version: str


class MemoryImport(Payload, frozen=True, kw_only=True, tag="memory.import-done.v1"):
    """The result of an import.

    ``version`` is the commit that the import made. ``commits`` is the number of imported commits. ``added``,
    ``changed`` and ``removed`` count files. ``joined`` are the paths of conversations whose messages were merged from
    both memories. ``conflicts`` are files that a person should look at. ``gaps`` are requirements of the imported
    memory that this installation does not meet.
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
        """Report whether the import had nothing to change."""
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
