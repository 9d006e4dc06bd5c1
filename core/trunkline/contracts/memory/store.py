"""MemoryStore: the interface of a store of memory, and of the rules that check its changes."""

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
from trunkline.contracts.memory.check import MemoryFinding
from trunkline.contracts.memory.embedder import Embedder
from trunkline.contracts.memory.files import MemoryChanged, MemoryEntry, MemoryFile, UnreadEntry
from trunkline.contracts.memory.history import (
    MemoryBlame,
    MemoryChange,
    MemoryDifference,
    MemoryReverted,
    RevertMemory,
)
from trunkline.contracts.memory.index import IndexProgress, IndexStats
from trunkline.contracts.memory.purge import RemainingCopy
from trunkline.contracts.memory.purger import Purge
from trunkline.contracts.memory.search import MemoryHit, SearchMemory
from trunkline.contracts.memory.transfer import ImportMemory, ImportProgress, MemoryImport
from trunkline.contracts.plugins.extensions import HealthCheck
from trunkline_bus import Refusal, Scope

NOWHERE = Scope()
"""The scope of a change that belongs to no conversation."""


@dataclass(frozen=True, slots=True)
class ChunkType:
    """A type of chunk. A custom type may declare required and optional fields."""

    name: str
    description: str = ""
    required_fields: tuple[str, ...] = ()
    optional_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkType:
    """A type of link that a request can make, such as ``depends_on``."""

    name: str
    description: str = ""


class Change:
    """A change of files before its commit. It maps a path to the new text, or to None for a deletion.

    ``scope`` names the conversation and turn of the change, if any; history records them. ``known`` gives, for files
    that are only appended to or moved, the number of bytes at the beginning that memory has already; rules have checked
    these bytes before. ``missing_blocks`` are the blocks that the change writes into and that do not exist after it.
    """

    __slots__ = ("actor", "files", "known", "missing_blocks", "reason", "scope")

    def __init__(
        self,
        files: dict[str, bytes | None],
        *,
        actor: str,
        reason: str,
        scope: Scope = NOWHERE,
        known: Mapping[str, int] = MappingProxyType({}),
        missing_blocks: frozenset[str] = frozenset(),
    ) -> None:
        self.files = files
        self.known = known
        self.missing_blocks = missing_blocks
        self.actor = actor
        self.reason = reason
        self.scope = scope


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """The texts that a purge removed from history, and the number of commits that it rewrote.

    ``paths`` were removed entirely; of ``changed`` a part was removed. ``versions`` are removed versions of paths that
    also held other files: pairs of the path and the id of the removed content. ``kept`` are copies that still hold some
    of the same text.
    """

    paths: tuple[str, ...]
    commits: int
    changed: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    kept: tuple[RemainingCopy, ...] = ()


class MemoryRule(Protocol):
    """Checks every change before its commit, for redaction, retention or limits.

    Guarantees: the rules are applied in their order, and each receives the result of the one before. A rule runs in a
    thread and must be synchronous and quick, because all other changes wait.

    Not guaranteed: that a change is committed because the rule returned it. A rule may be called again for the same
    change. The git store commits edits by hand without asking the rules.
    """

    def __call__(self, change: Change) -> Change:
        """Return the change, or another change in its place.

        Raises:
            Refusal: to refuse the change; the caller sees the code and the sentence. Any other exception refuses the
                change too.
        """
        ...


@dataclass(frozen=True, slots=True)
class InstalledComponents:
    """The installed parts that a memory may depend on: plugins with their versions, adapters, tools.

    If ``adapters`` or ``tools`` is empty, it is unknown which are installed, and an import reports none as missing.
    """

    plugins: Mapping[str, str] = field(default_factory=dict)
    adapters: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StoreContext:
    """The folders, rules and services that a store is opened with.

    ``root`` is the folder of the memory. ``cache`` is a folder for files that can be rebuilt from the root. Every
    change that a method makes passes ``rules`` in their order before its commit. ``on_change`` is called after each
    commit, including commits of edits by hand. ``installed`` lists the installed components. ``embedder`` turns texts
    into vectors; the store does not close it. ``commit_window`` is how many seconds a write may wait to be committed
    together with others. With ``fsync`` a change is on disk before it is acknowledged; without it a power failure may
    lose acknowledged changes.
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
    """The only writer of a memory root.

    Paths are POSIX, relative to the root. ``expected`` is the hash that a file must have: "" for no file, None for any
    content. A store that can look up chunks and documents is an ``IndexProvider`` (``trunkline.api.chunks``) too. For a
    store that is not, the memory worker uses the indexes of another loaded store that is.

    Guarantees: methods may be called concurrently. A method that changes files returns after the change is committed to
    history. A change that is refused changes nothing. Concurrent changes are committed one after another. A method that
    reads sees every change that was acknowledged before the call.

    Not guaranteed: the order of concurrent changes; that a change which was cancelled is not committed; the newest
    changes in a search, a list of conversations or a lookup of chunks while history is damaged.

    Errors: every method that takes a path raises Refusal ``invalid_path`` for one outside the root. Every method that
    changes files raises Refusal ``write_failure`` when the disk refuses, and what a rule raises. The caller of the
    memory worker gets the code and the sentence of a Refusal. For any other exception it gets ``internal`` and a
    reference number, under which the exception is logged.
    """

    def health_checks(self, root: Path, cache: Path) -> Iterable[HealthCheck]:
        """Return the checks that ``trunkline doctor`` runs on a root, whether or not a process has the root open. A
        check changes nothing. Called on a store that is not open. Raises nothing. An exception ends ``trunkline
        doctor``, while an exception of a check is its result.
        """
        return ()

    def holder(self, root: Path) -> int | None:
        """Return the id of the process that has the root open; None if no process has, or if the store cannot tell.
        Takes no lock, so that a worker that starts at the same time is not disturbed. Called on a store that is not
        open. Raises nothing. After an exception the check ``memory.lock`` fails.
        """
        return None

    def check_root(self, root: Path, cache: Path, *, repair: bool) -> Sequence[MemoryFinding]:
        """Check a root that no process has open, even if ``open`` fails on it. With ``repair`` repair the damage that
        can be repaired. Called by ``trunkline memory doctor``, on a store that is not open. Without damage the result
        may be empty.

        Not guaranteed: that all damage is found or can be repaired.

        Raises:
            StorageError: another process has the root open.
            OSError: the root cannot be read or written.
        """
        return ()

    async def run_maintenance(self) -> None:
        """Maintain the open root: commit edits by hand, update indexes, pack history. Runs until it is cancelled, while
        other methods are called.

        Raises:
            Exception: the memory worker ends, and is started again.
        """
        await anyio.sleep_forever()

    @abstractmethod
    async def open(self, context: StoreContext) -> None:
        """Lock the root, prepare its history and update the index. Called once, before all other methods except
        ``health_checks``, ``holder`` and ``check_root``. A root that a killed process left is repaired as far as
        necessary.

        Raises:
            StorageError: history cannot be prepared, or another process has the root open. The root is released, and
                the memory worker does not start.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Commit the waiting changes and release the root. Called once; no other method is called afterwards. The root
        is released even if this raises. Raises OSError if a file of the cache cannot be written.
        """

    @abstractmethod
    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """Return the text of a file, as it is now or as it was at a version.

        Not guaranteed: that the file stays the same until the caller writes. Pass its hash as ``expected``.

        Raises:
            Refusal: ``not_found``: there is no such file or version. ``invalid_path``.
        """

    async def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file, which need not be text, as it is now. A store without this method takes no
        attachments of messages back out of memory.

        Raises:
            Refusal: ``not_found``: there is no such file, or the store does not implement this method.
                ``invalid_path``.
        """
        raise _cannot("read files that are no text")

    async def read_many(self, paths: Sequence[str]) -> Sequence[MemoryFile | Refusal]:
        """Return several small files as they are now, in the order of the paths, with a Refusal in place of each file
        that cannot be read. Every turn begins with such a request. A store that can read several files at once
        overrides this method.

        Not guaranteed: one snapshot of all files.

        Raises nothing for a file that cannot be read. The memory worker leaves out a file whose Refusal is
        ``not_found``, marks one as unread whose Refusal is ``invalid_path``, and refuses the request for any other
        code.
        """
        found: list[MemoryFile | Refusal] = []
        for path in paths:
            try:
                found.append(await self.read(path))
            except Refusal as refusal:
                found.append(refusal)
        return found

    @abstractmethod
    async def change(self, change: Change, *, expected: dict[str, str | None] | None = None) -> str:
        """Commit files together and return the version: all of them or none. Files that already have the new text are
        not written again. ``expected`` maps a path to the hash that it must have.

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
        """Revert a change by a new commit, and return the paths and the versions. Later changes of other lines are
        kept.

        Raises:
            Refusal: ``not_found``: there is no such version, it changed nothing at the path, or the store cannot
                revert. ``write_conflict``: a later change is in the way, or there is nothing to revert.
                ``invalid_path``, ``write_failure``.
        """
        raise _cannot("revert changes")

    @abstractmethod
    async def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """Return the best hits, at most ``query.limit``.

        Not guaranteed: that the scores of two stores are comparable, or that a store knows all filters of
        ``SearchMemory``; it ignores those that it does not know.

        Raises:
            Refusal: ``invalid_path``; ``not_found``: the index cannot be read.
        """

    @property
    def vectors(self) -> float | None:
        """The share (0 to 1) of passages that a search by meaning can find; None if searches compare words only. Raises
        nothing.
        """
        return None

    async def index_stats(self) -> IndexStats:
        """Return the statistics of the index. Raises Refusal ``not_supported`` if the store has no index, and
        ``not_found`` if the index cannot be read.
        """
        raise Refusal("not_supported", "This memory has no index: its store reads all files for each search.")

    async def reindex(
        self, on_progress: Callable[[IndexProgress], None], *, vectors: bool = False
    ) -> IndexStats:
        """Rebuild the index and return its statistics; with ``vectors`` rebuild the vectors too. ``on_progress`` is
        called with the progress, in any thread.

        Not guaranteed: that all vectors exist when this returns. If the embedder fails, the missing vectors are made
        later. Searches may wait for the index.

        Raises Refusal as ``index_stats`` does.
        """
        return await self.index_stats()

    @abstractmethod
    async def list(self, path: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Return the files and folders in a folder, with ``recursive`` at every depth; "" is the root.

        Raises:
            Refusal: ``not_found``: there is no such folder. ``invalid_path``.
        """

    async def unread(self, path: str) -> tuple[UnreadEntry, ...]:
        """Return the entries under a folder, at any depth, that memory does not read, such as links. Return nothing if
        the folder does not exist. A guard that keeps its rules in the folder uses this method to detect rules that
        memory does not read.

        Raises:
            Refusal: ``invalid_path``: the path is no folder, or the folder cannot be opened.
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
        """Return the commits that wrote the lines ``first`` to ``last`` of a file; with ``mainline`` the commits that
        brought the lines into this memory. Without ``version`` it is the last commit, not the file as it is now.

        Raises:
            Refusal: ``not_found`` for a file or version that does not exist, and if the store cannot do this.
                ``invalid_path``.
        """
        raise _cannot("report the author of a line")

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """Return the difference at a path between ``old`` and ``new`` (None: the last commit). Without ``old`` it is
        the last change of the path, as seen from ``new``.

        Raises:
            Refusal: ``not_found`` for a version that does not exist, for a path that never existed, and if the store
                cannot do this. ``invalid_path``.
        """
        raise _cannot("compare versions")

    @abstractmethod
    async def export(self, target: Path, *, derived: bool = False) -> int:
        """Write the archive (a tar of files and history) to ``target`` and return the number of its files. With
        ``derived`` the archive includes the search indexes that the store has. Reading and writing continue meanwhile.

        Not guaranteed: edits by hand that cannot be committed now. The archive's manifest lists them.

        Raises:
            OSError: the archive cannot be written. The caller deletes ``target``.
            Refusal: ``not_found``: history cannot be read.
        """

    async def trace(self, target: str) -> Purge:
        """Return the files that ``target`` names: a path, or the id of a chunk or a conversation. The result has no
        paths if there are no such files. Edits by hand are committed first; nothing else is changed.

        Raises:
            Refusal: ``invalid_path``; ``not_supported`` if the store cannot trace; ``not_found``: history cannot be
                read.
        """
        raise Refusal("not_supported", "The store of this memory cannot rewrite its history.")

    async def purge(
        self, purge: Purge, without: Callable[[str, bytes, Purge], bytes | None], *, actor: str
    ) -> PurgeResult:
        """Remove the files that ``trace`` found from memory and all of history.

        ``without`` returns what remains of a version of any other file that names the purged files. Repeating a purge
        changes nothing, and completes a purge that a crash interrupted.

        Guarantees: when this returns, neither the files of the root nor its history nor the store's indexes hold the
        purged texts, except the copies that the result lists as ``kept``.

        Not guaranteed: copies outside of the root, such as earlier exports and backups. After an exception the purge
        may be incomplete; repeat it.

        Raises Refusal as ``trace`` does, and as any change does.
        """
        raise Refusal("not_supported", "The store of this memory cannot rewrite its history.")

    async def import_archive(
        self, archive: Path, request: ImportMemory, on_progress: Callable[[ImportProgress], None]
    ) -> MemoryImport:
        """Import an archive that ``export`` wrote, or that was made from another system's files, and return the result.

        The store may consume ``archive``. ``on_progress`` is called with the progress, in any thread. Repeating an
        import adds only what is new.

        Not guaranteed: that a failed import changed nothing, unless the Refusal is ``bad_archive``. The files that were
        imported before the failure are kept.

        Raises:
            Refusal: ``bad_archive``: the archive cannot be used; nothing was changed. ``not_supported``: the store
                cannot import. As any change.
            OSError: the archive cannot be read or unpacked.
        """
        raise Refusal("not_supported", "The store of this memory cannot import archives.")

    async def check(self, *, repair: bool) -> Sequence[MemoryFinding]:
        """Check the stored files for damage and, with ``repair``, repair what can be repaired. The default has no
        findings. Changes wait meanwhile.

        Not guaranteed: that all damage is found or can be repaired.

        Raises OSError if the root cannot be read or written.
        """
        return ()

    @abstractmethod
    async def append_conversation(self, append: AppendConversation) -> int:
        """Append the messages whose ids are not stored yet, commit them together, and return the number of messages
        in the conversation. Repeating the call changes nothing, so a caller may retry after a crash.

        The conversation's summary records change as ``trunkline.api.store.changed_records`` says. They, the title, the
        model, the origin of a fork and the marks ``pinned`` and ``archived`` are stored beside the messages. A new
        message takes a conversation out of the archive.

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
        """Return a page of the conversations that match, newest first. ``ListConversations.admits`` decides about
        everything but ``search``. A summary tells the origin of a fork.

        Not guaranteed: one snapshot. A conversation that changes between two calls may appear twice or be skipped.

        Raises:
            Refusal: ``not_found``: the index cannot be read.
        """

    @abstractmethod
    async def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """Return the summary of a conversation in whichever block it is; None for an unknown id.

        Raises:
            Refusal: ``not_found``: the index cannot be read.
        """


def _cannot(what: str) -> Refusal:
    return Refusal("not_found", f"This memory's store cannot {what}.")
