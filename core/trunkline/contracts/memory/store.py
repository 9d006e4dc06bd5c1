"""MemoryStore: what a store must do, and the rules that its changes pass."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import anyio

from trunkline.contracts.conversations.messages import (
    AppendConversation,
    ConversationPage,
    ConversationSlice,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.index import IndexProgress, IndexStats
from trunkline.contracts.memory.messages import (
    ImportMemory,
    ImportProgress,
    MemoryBlame,
    MemoryChange,
    MemoryChanged,
    MemoryDifference,
    MemoryEntry,
    MemoryFile,
    MemoryFinding,
    MemoryHit,
    MemoryImport,
    MemoryReverted,
    RevertMemory,
    SearchMemory,
    UnreadEntry,
)
from trunkline.contracts.memory.purge import RemainingCopy
from trunkline.contracts.memory.purger import Purge
from trunkline.contracts.plugins.extensions import HealthCheck
from trunkline_bus import Refusal, Scope

NOWHERE = Scope()
"""The scope of a change that belongs to no conversation."""


@dataclass(frozen=True, slots=True)
class ChunkType:
    """A type of chunk. A custom one may name the fields it needs and those it may have."""

    name: str
    description: str = ""
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkType:
    """A type of link that is made by hand, such as ``depends_on``."""

    name: str
    description: str = ""


class Change:
    """One change of files, before it is committed: path to new text, or to None for a deletion.

    ``scope`` tells the conversation and turn it belongs to, if any; history names them. ``known`` says how many bytes
    at the beginning of a file are in memory already, of those that only grow or move: rules saw them before.
    ``homeless`` are the blocks that it writes into and that are not there once it is made.
    """

    __slots__ = ("actor", "files", "homeless", "known", "reason", "scope")

    def __init__(
        self,
        files: dict[str, bytes | None],
        *,
        actor: str,
        reason: str,
        scope: Scope = NOWHERE,
        known: Mapping[str, int] = MappingProxyType({}),
        homeless: frozenset[str] = frozenset(),
    ) -> None:
        self.files = files
        self.known = known
        self.homeless = homeless
        self.actor = actor
        self.reason = reason
        self.scope = scope


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """The texts that a purge took out of history, and the number of commits that it rewrote.

    ``paths`` are gone, of ``changed`` a part is. ``versions`` went of paths that hold other files too, with the ids
    of what they held. ``kept`` is what holds some of the same text still.
    """

    paths: tuple[str, ...]
    commits: int
    changed: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    kept: tuple[RemainingCopy, ...] = ()


class MemoryRule(Protocol):
    """Looks at every change before it is committed: redaction, retention, limits."""

    def __call__(self, change: Change) -> Change:
        """Return the change, or another in its place. Raise Refusal to refuse it; any other exception refuses too."""
        ...


@dataclass(frozen=True, slots=True)
class InstalledComponents:
    """The installed parts that a memory may depend on: plugins with their versions, adapters, tools.

    Nothing is said of adapters or tools when they are empty.
    """

    plugins: Mapping[str, str] = field(default_factory=dict)
    adapters: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The folders, rules and services that a store is opened with.

    ``root`` is the folder that it keeps, ``cache`` one for what can be made again from the root. Every change passes
    ``rules`` in their order before it is committed. ``on_change`` is called after each commit, of edits by hand too.
    ``installed`` says what is here. ``embedder`` turns texts into vectors; the store does not close it.
    ``commit_window`` is how many seconds a write may wait for others to be committed with it. With ``fsync`` a change
    is on disk before it is acknowledged; without it a power cut may lose acknowledged changes.
    """

    root: Path
    cache: Path
    rules: Sequence[MemoryRule] = ()
    on_change: Callable[[MemoryChanged], None] = lambda changed: None
    installed: Callable[[], InstalledComponents] = InstalledComponents
    embedder: Embedder | None = None
    commit_window: float = 0.004
    fsync: bool = True


class MemoryStore(ABC):
    """The one writer of a memory root. Every method that changes returns after the change is committed to history.

    Paths are POSIX, relative to the root. Every method that takes a path raises Refusal ``invalid_path`` for one
    outside the root. Every method that changes files raises Refusal ``write_failure`` when the disk refuses, and
    what a rule raises; a change that is refused changes nothing. Concurrent changes are committed one after another.
    The order among them is not guaranteed.

    ``expected`` is the hash that a file must have: "" for no file, None for any content.

    A store that can look up chunks and documents is an ``IndexProvider`` (``trunkline.api.chunks``) too. For one that
    is not, the memory worker uses the indexes of another loaded store that is.
    """

    def health_checks(self, root: Path, cache: Path) -> Iterable[HealthCheck]:
        """Return what ``trunkline doctor`` checks of a root, whether or not a process has it open. A check changes
        nothing. Called on a store that is not open."""
        return ()

    def holder(self, root: Path) -> int | None:
        """Return the process that has the root open; None when nobody has, or the store cannot tell. Takes no lock, so
        that a worker that starts meanwhile is not disturbed."""
        return None

    def check_root(self, root: Path, cache: Path, *, repair: bool) -> Sequence[MemoryFinding]:
        """Check a root that no process has open, also one that ``open`` fails on; with ``repair`` repair what can be
        repaired. Called on a store that is not open.

        Raises:
            StorageError: another process holds the root.
            OSError: the root cannot be read or written.
        """
        return ()

    async def tend(self) -> None:
        """Look after the root while it is open (edits by hand, indexes, packing). Runs until it is cancelled."""
        await anyio.sleep_forever()

    @abstractmethod
    async def open(self, context: StoreContext) -> None:
        """Take the root, make sure that history works, bring the index up to date. No other method is called before.

        Raises:
            StorageError: history cannot be established, or another process holds the root.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Commit what is waiting and let go of the root."""

    @abstractmethod
    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """Return the text of a file, as it is now or as it was at a version. Every change acknowledged before the call
        is seen. The file may change before the caller writes: pass its hash as ``expected``.

        Raises:
            Refusal: ``not_found``: there is no such file or version. ``invalid_path``.
        """

    async def read_many(self, paths: Sequence[str]) -> Sequence[MemoryFile | Refusal]:
        """Several small files as they are now, each or why it cannot be read, in the order of the paths. Every turn
        begins with such a question; a store that can answer it in one go does so here."""
        found: list[MemoryFile | Refusal] = []
        for path in paths:
            try:
                found.append(await self.read(path))
            except Refusal as refusal:
                found.append(refusal)
        return found

    @abstractmethod
    async def change(self, change: Change, *, expected: dict[str, str | None] | None = None) -> str:
        """Commit files together and return the version: all of them or none. Files that already have the new text
        are not written again. ``expected`` maps a path to the hash that it must have.

        Raises:
            Refusal: ``write_conflict``: a file does not have the expected hash. ``invalid_path``, ``write_failure``.
        """

    @abstractmethod
    async def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        actor: str,
        reason: str,
        scope: Scope = NOWHERE,
        expected: str | None = None,
    ) -> str:
        """Replace the first occurrence of ``old`` and return the version.

        Raises:
            Refusal: ``not_found``: there is no such file. ``write_conflict``: ``old`` is empty or not in the file, or
                the file does not have the expected hash. ``invalid_path``, ``write_failure``.
        """

    @abstractmethod
    async def move(
        self,
        source: str,
        target: str,
        *,
        actor: str,
        reason: str,
        scope: Scope = NOWHERE,
        expected: str | None = None,
    ) -> str:
        """Move a file, or a folder with everything in it, in one commit, and return the version. A file at the target
        is never replaced.

        Raises:
            Refusal: ``not_found``: there is nothing at the source. ``write_conflict``: the target exists, or the file
                does not have the expected hash. ``invalid_path``: the target lies within the source.
                ``write_failure``.
        """

    @abstractmethod
    async def delete(
        self, path: str, *, actor: str, reason: str, scope: Scope = NOWHERE, expected: str | None = None
    ) -> str:
        """Delete a file, or a folder with everything in it, in one commit, and return the version. History keeps the
        text: only ``purge`` removes it.

        Raises:
            Refusal: ``not_found``: there is nothing at the path. ``write_conflict``: the file does not have the
                expected hash. ``invalid_path``, ``write_failure``.
        """

    async def revert(self, revert: RevertMemory, *, scope: Scope = NOWHERE) -> MemoryReverted:
        """Take a change back as a change of its own. A store that cannot refuses with ``not_found``."""
        raise _cannot("take changes back")

    @abstractmethod
    async def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """Return the best hits, at most ``query.limit``. Every change acknowledged before the call is searched. The
        scores of two stores are not comparable, and a store may ignore the filters of ``SearchMemory`` that it does
        not know.

        Raises:
            Refusal: ``invalid_path``.
        """

    @property
    def vectors(self) -> float | None:
        """The share of passages (0 to 1) that a search finds by their meaning; None when it goes by words alone."""
        return None

    async def index_stats(self) -> IndexStats:
        """Return the figures of the index. Raises Refusal ``not_supported`` when the store has none."""
        raise Refusal(
            "not_supported", "This memory has no index: its store looks through all of it at every search."
        )

    async def reindex(
        self, on_progress: Callable[[IndexProgress], None], *, vectors: bool = False
    ) -> IndexStats:
        """Make the index anew, and say now and then how far it is; with ``vectors`` those as well. Raises as
        ``index_stats``."""
        return await self.index_stats()

    @abstractmethod
    async def list(self, path: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Return the files and folders in a folder, with ``recursive`` at every depth; "" is the root. Every change
        acknowledged before the call is seen.

        Raises:
            Refusal: ``not_found``: there is no such folder. ``invalid_path``.
        """

    async def unread(self, path: str) -> tuple[UnreadEntry, ...]:
        """Return the entries under a folder, at whatever depth, that are not read, such as links; nothing where
        there is no such folder. A guard whose rules lie there has to know of it.
        """
        return ()

    @abstractmethod
    async def history(self, path: str, *, limit: int) -> tuple[MemoryChange, ...]:
        """Return the changes of a file or folder, newest first, at most ``limit``. Deleted paths have a history too;
        a purged text has none.

        Raises:
            Refusal: ``not_found``: there was never anything at the path. ``invalid_path``.
        """

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Who wrote the lines ``first`` to ``last`` of a file, with ``mainline`` who brought them into this memory. A
        store that cannot refuses with ``not_found``."""
        raise _cannot("say who wrote a line")

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """Return the differences at a path between versions. A store that cannot refuses with ``not_found``."""
        raise _cannot("compare versions")

    @abstractmethod
    async def export(self, target: Path, *, derived: bool = False) -> int:
        """Write the archive (tar of files and history) and return how many files it holds.

        With ``derived`` search indexes are taken along, as far as the store has any.
        """

    async def trace(self, target: str) -> Purge:
        """Return the files that a path, a chunk or a conversation (by its id) stands for. Nothing is changed; no
        paths when there is nothing.

        Raises:
            Refusal: ``invalid_path``, or ``not_supported``: this store cannot.
        """
        raise Refusal("not_supported", "This memory is kept in a store whose history cannot be written anew.")

    async def purge(
        self, purge: Purge, without: Callable[[str, bytes, Purge], bytes | None], *, actor: str
    ) -> PurgeResult:
        """Take what ``trace`` found out of memory and history, as if it had never been.

        ``without`` says what is left of a version of any other file that names it. To do it again changes nothing, and
        finishes what a crash cut short. Raises as ``trace``, or as any change.
        """
        raise Refusal("not_supported", "This memory is kept in a store whose history cannot be written anew.")

    async def bring_in(
        self, archive: Path, request: ImportMemory, on_progress: Callable[[ImportProgress], None]
    ) -> MemoryImport:
        """Bring in an archive that ``export`` wrote, or one of another system's files, and say what was done.

        ``archive`` may be used up. ``on_progress`` hears, in any thread, how far it is.

        Raises:
            Refusal: ``bad_archive``, ``not_supported``, or as any change. A bad archive changes nothing.
        """
        raise Refusal("not_supported", "This memory is kept in a store that cannot bring archives in.")

    async def examine(self, *, repair: bool) -> Sequence[MemoryFinding]:
        """Check whether what is stored is intact, and repair what can be repaired. A store may know nothing of that."""
        return ()

    @abstractmethod
    async def append_conversation(self, append: AppendConversation) -> int:
        """Append the messages whose ids are not stored yet, commit them together, and return the number of messages
        in the conversation. Repeating the call changes nothing, so a caller may retry after a crash.

        Raises:
            Refusal: ``write_failure``, ``invalid_path``: the block or the conversation has no valid name.
        """

    @abstractmethod
    async def load_conversation(self, block: str, conversation: str, *, after: int) -> ConversationSlice:
        """Return the messages of a conversation after the first ``after``, in the order in which they were appended.
        ``exists`` is false for an unknown conversation: that is no error.

        Raises:
            Refusal: ``invalid_path``: the block or the conversation has no valid name.
        """

    @abstractmethod
    async def list_conversations(self, query: ListConversations) -> ConversationPage:
        """Return a page of the conversations that match, newest first. Two pages are not one snapshot: a conversation
        that changes between two calls may appear twice or be skipped."""

    @abstractmethod
    async def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """Return the summary of a conversation in whichever block it is; None for an unknown id."""


def _cannot(what: str) -> Refusal:
    return Refusal("not_found", f"This memory's store cannot {what}.")
