"""The git store: a git repository of plain files, behind ``MemoryStore``. Joins the parts; none of their work."""

import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import apsw
import msgspec

from trunkline import HealthCheck, MemoryEntry, MemoryFile, MemoryHit, StorageError
from trunkline.api.archive import InvalidArchive
from trunkline.api.bus import Refusal, Scope
from trunkline.api.chunks import ChunkIndex, IndexProvider
from trunkline.api.documents import DocumentCollections
from trunkline.api.gateway import ConversationSummary, ListConversations
from trunkline.api.importer import ImportGap
from trunkline.api.memory import (
    AppendConversation,
    ConversationPage,
    ConversationSlice,
    MemoryChange,
    Purge,
    SearchMemory,
)
from trunkline.api.store import (
    INITIAL_FILES,
    NOWHERE,
    Change,
    ImportMemory,
    ImportProgress,
    IndexProgress,
    IndexStats,
    MemoryBlame,
    MemoryDifference,
    MemoryFinding,
    MemoryImport,
    MemoryReverted,
    MemoryStore,
    PurgeResult,
    RevertMemory,
    StoreContext,
    UnreadEntry,
    conversation_paths,
    normalize_folder,
    normalize_path,
)
from trunkline_git_store.chunks.git_index import GitChunkIndex
from trunkline_git_store.chunks.in_memory_index import InMemoryChunkIndex
from trunkline_git_store.chunks.sqlite_index import IndexQuery
from trunkline_git_store.committer import CommitResult
from trunkline_git_store.components import StoreComponents
from trunkline_git_store.conversations import AppendMessages
from trunkline_git_store.document_collections.collection_store import CollectionStore
from trunkline_git_store.executor import StoreExecutor
from trunkline_git_store.fsck.integrity_check import DATABASES, IntegrityCheck, check_root
from trunkline_git_store.group_commit import GroupCommit
from trunkline_git_store.health_checks import health_checks
from trunkline_git_store.history.blame import blame
from trunkline_git_store.history.changes import list_changes
from trunkline_git_store.history.diff import diff
from trunkline_git_store.history.revert import RevertFiles, restore_plan, revert_plan
from trunkline_git_store.index.search_index import index_stats
from trunkline_git_store.lock import lock_holder
from trunkline_git_store.maintenance import StoreMaintenance
from trunkline_git_store.operations import (
    WriteFiles,
    WriteOperation,
    delete_operation,
    edit_operation,
    move_operation,
)
from trunkline_git_store.purge.job import PurgeJob
from trunkline_git_store.purge.scan import FileFilter, PurgeScan
from trunkline_git_store.purge.target import parse_target
from trunkline_git_store.purge.version_index import VersionIndex
from trunkline_git_store.repository import Repository
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.search.content import search_content
from trunkline_git_store.search.conversations import find_conversation, list_conversations
from trunkline_git_store.search.literal import search_names
from trunkline_git_store.search.semantic import QueryVector
from trunkline_git_store.store_reader import StoreReader, read_version
from trunkline_git_store.transfer.archive_import import ArchiveImport
from trunkline_git_store.transfer.export import copied_index, export
from trunkline_git_store.transfer.history_merge import Rule
from trunkline_git_store.vectors.backfill import VectorProgress

_log = logging.getLogger(__name__)

T = TypeVar("T")

UNSTABLE_REASON = "it was being written: the archive has its last stable version, if there was one"
EXPORT_AGAIN_HINT = "Export again when it is complete."

PLATFORM = "trunkline"
"""The actor of what the platform itself writes."""


class GitMemoryStore(MemoryStore, IndexProvider):
    """Memory as a git repository."""

    # Life ----------------------------------------------------------------------------------------------------

    async def open(self, context: StoreContext) -> None:
        """Lock the root, repair what a killed process left, and commit external edits. See ``MemoryStore.open``."""
        self._context = context
        self._group_commit = GroupCommit(self._commit, context.commit_window)
        open_all = partial(
            StoreComponents, context.root, context.cache, sync=context.fsync, embedder=context.embedder
        )
        self._components = await anyio.to_thread.run_sync(open_all)
        self._executor = StoreExecutor(self._components)
        self._maintenance = StoreMaintenance(self._components, self._executor, self._group_commit)
        self._present = StoreReader(self._components)
        try:
            await self._first_commit()
            self._components.committer.rules = context.rules
        except BaseException:
            self._components.close()
            raise

    async def _first_commit(self) -> None:
        """Take in what was edited by hand; in a memory without history also write the first files."""
        new = self._components.repository.head() is None
        missing: dict[str, bytes | None] = {
            path: data
            for path, data in INITIAL_FILES.items()
            if new and self._components.worktree.status(path) is None
        }
        try:
            await self._maintenance.commit_external_edits()
        except Refusal as refusal:
            if new:
                raise self._startup_error(refusal) from refusal
            _log.error("external edits are not committed and stay in their files: %s", refusal.message)
        try:
            if new:
                begin = WriteFiles(actor=PLATFORM, reason="Begin this memory", files=missing)
                await self._group_commit.submit(begin)
        except Refusal as refusal:
            raise self._startup_error(refusal) from refusal

    def _startup_error(self, refusal: Refusal) -> StorageError:
        where = f"{self._components.layout.root}: {refusal.message}"
        return StorageError(
            f"Memory cannot start (version history): {where}", hint="The log states the reason."
        )

    async def aclose(self) -> None:
        """Finish what is waiting, then let go of the root."""
        with anyio.CancelScope(shield=True):
            await self._group_commit.wait_idle()
            try:
                await self._executor.write(self._maintenance.save_caches)
            finally:
                await self._executor.use_index(self._components.close)

    async def run_maintenance(self) -> None:
        """Keep the index abreast, take in edits made by hand, pack. Runs until it is cancelled."""
        await self._maintenance.run()

    async def pack(self, *, now: bool = False) -> None:
        """Pack loose objects when there are many, or ``now``, and join packs when there are many."""
        await self._maintenance.pack(now=now)

    # Indexes -------------------------------------------------------------------------------------------------

    def chunk_index(self, store: MemoryStore) -> ChunkIndex:
        """The index of this store; for another store an index in main memory."""
        return GitChunkIndex(self) if store is self else InMemoryChunkIndex(store)

    def document_collections(self, folder: Path) -> DocumentCollections:
        """A small repository with an index for each conversation."""
        return CollectionStore(folder)

    # A root that is not open here ----------------------------------------------------------------------------

    def health_checks(self, root: Path, cache: Path) -> Iterable[HealthCheck]:
        """Check the history, the sizes of files and the chunks."""
        return health_checks(root, cache)

    def holder(self, root: Path) -> int | None:
        """The process whose id is in the lock file, if it lives."""
        return lock_holder(RootLayout(root).lock)

    def check_root(self, root: Path, cache: Path, *, repair: bool) -> Sequence[MemoryFinding]:
        """Check every object of a root that nobody has open."""
        return check_root(root, cache, repair=repair)

    # Changing ------------------------------------------------------------------------------------------------

    async def change(self, change: Change, *, expected: dict[str, str | None] | None = None) -> str:
        """Commit files together. See ``MemoryStore.change``."""
        request = WriteFiles(
            actor=change.actor,
            reason=change.reason,
            scope=change.scope,
            files=_normalize_paths(change.files),
            expected=_normalize_paths(expected or {}),
        )
        return (await self._group_commit.submit(request)).version

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
        """Replace the first occurrence of ``old``."""
        request = edit_operation(path, old, new, actor=actor, reason=reason, scope=scope, expected=expected)
        return (await self._group_commit.submit(request)).version

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
        """Move a file or folder."""
        request = move_operation(source, target, actor=actor, reason=reason, scope=scope, expected=expected)
        return (await self._group_commit.submit(request)).version

    async def delete(
        self, path: str, *, actor: str, reason: str, scope: Scope = NOWHERE, expected: str | None = None
    ) -> str:
        """Delete a file or folder."""
        request = delete_operation(path, actor=actor, reason=reason, scope=scope, expected=expected)
        return (await self._group_commit.submit(request)).version

    async def revert(self, revert: RevertMemory, *, scope: Scope = NOWHERE) -> MemoryReverted:
        """Take a change back, or go back to a version, as a commit of its own."""
        plain = normalize_folder(revert.path)
        if revert.to is None:
            found = await self._executor.query_path_index(
                lambda steps: revert_plan(steps, plain, revert.version)
            )
        else:
            to = revert.to
            found = await self._executor.query_path_index(lambda steps: restore_plan(steps, plain, to))
        request = RevertFiles(actor=revert.actor, reason=revert.reason, scope=scope, undoing=found)
        done = await self._group_commit.submit(request)
        return MemoryReverted(paths=request.affected_paths, version=done.version, undone=found.version)

    async def append_conversation(self, append: AppendConversation) -> int:
        """Append the messages that are not stored yet."""
        return (
            await self._group_commit.submit(
                AppendMessages.from_request(append, self._components.conversations)
            )
        ).count

    # Reading -------------------------------------------------------------------------------------------------

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """A file's text, now or at a version."""
        plain = normalize_path(path)
        if version is None:
            return await self._executor.read(lambda: self._present.read(plain))
        return await self._executor.read_history(lambda repository: read_version(repository, plain, version))

    async def read_bytes(self, path: str) -> bytes:
        """A file's bytes, as it is now."""
        plain = normalize_path(path)
        return await self._executor.read(lambda: self._present.read_bytes(plain))

    async def read_many(self, paths: Sequence[str]) -> Sequence[MemoryFile | Refusal]:
        """Several files, each or why it cannot be read; all by one thread."""
        return await self._executor.read(lambda: [self._present.try_read(path) for path in paths])

    async def list(self, path: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Names under a folder."""
        plain = normalize_folder(path)
        found = await self._executor.read(
            lambda: self._components.worktree.entries(plain, recursive=recursive)
        )
        return tuple(found)

    async def unread(self, path: str) -> tuple[UnreadEntry, ...]:
        """Return the entries below a folder that are not read, with the reasons."""
        plain = normalize_folder(path)
        return tuple(await self._executor.read(lambda: self._components.worktree.unread(plain)))

    async def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """Search names or text; every change acknowledged before the call is seen."""
        plain = msgspec.structs.replace(query, path=normalize_folder(query.path), limit=max(0, query.limit))
        if plain.limit == 0:
            return ()
        if plain.kind == "filename":
            entries = await self.list("", recursive=True)
            return search_names((entry.path for entry in entries if entry.kind == "file"), plain)
        meaning = await self.embed_query(plain.query)
        return await self._executor.query_index(
            lambda connection: search_content(connection, self._components.index, plain, meaning)
        )

    async def embed_query(self, text: str) -> QueryVector | None:
        """Return the query as a vector; None when only words can be searched."""
        backfill = self._components.backfill
        vector = await backfill.embed_query(text) if backfill and text.strip() else None
        return QueryVector(backfill.space, vector, backfill.embedder.least) if backfill and vector else None

    @property
    def vectors(self) -> float | None:
        """Return the share of passages that have a vector; None without an embedder."""
        return None if self._components.backfill is None else self._components.backfill.share

    async def index_stats(self) -> IndexStats:
        """Return the counts of the index."""
        return await self._executor.query_index(self._stats)

    async def reindex(
        self, on_progress: Callable[[IndexProgress], None], *, vectors: bool = False
    ) -> IndexStats:
        """Rebuild the index, then compute the missing vectors. Searches wait for the index."""

        def rebuild() -> None:
            total = self._components.index.estimated_files()
            self._components.index.rebuild(lambda done: on_progress(IndexProgress(done=done, total=total)))
            if vectors and self._components.backfill is not None:
                self._components.index.database.use(self._components.backfill.space.forget)

        await self._executor.use_index(rebuild)
        if self._components.backfill is not None:
            await self._components.backfill.run(
                self._executor.query_index, on_progress=lambda now: on_progress(_vector_progress(now))
            )
        return await self.index_stats()

    def _stats(self, connection: apsw.Connection) -> IndexStats:
        backfill = self._components.backfill
        return index_stats(connection, None if backfill is None else backfill.stats(connection))

    async def history(self, path: str, *, limit: int) -> tuple[MemoryChange, ...]:
        """The changes of a file or folder."""
        plain = normalize_folder(path)
        found = await self._executor.query_path_index(lambda steps: list_changes(steps, plain, limit))
        if not found and limit > 0:
            raise Refusal("not_found", f"There was never anything at {plain!r} in memory.")
        return found

    async def blame(
        self,
        path: str,
        version: str | None = None,
        *,
        first: int = 1,
        last: int | None = None,
        mainline: bool = False,
    ) -> MemoryBlame:
        """Return the author of each line of a file."""
        plain = normalize_path(path)
        return await self._executor.query_path_index(
            lambda steps: blame(steps, plain, version, first, last, mainline)
        )

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """Return the difference between two versions."""
        plain = normalize_folder(path)
        return await self._executor.query_path_index(lambda steps: diff(steps, plain, old, new))

    async def export(self, target: Path, *, derived: bool = False) -> int:
        """Write the archive."""

        def write() -> int:
            with ExitStack() as held:
                index = held.enter_context(copied_index(self._components.index_file)) if derived else None
                return export(
                    self._components.layout.root,
                    target,
                    plugins=self._context.installed().plugins,
                    derived=index,
                    gaps=unsaved,
                )

        unsaved = await self._commit_external_edits()
        if derived:
            await self._executor.query_index(lambda connection: None)
        async with self._maintenance.pack_lock:
            return await anyio.to_thread.run_sync(write)

    async def _commit_external_edits(self) -> tuple[ImportGap, ...]:
        """Commit the external edits made until now. A failure is reported and does not stop an export."""
        try:
            moving = await self._maintenance.commit_external_edits()
        except Refusal as refusal:
            return (ImportGap(what="external edits that are not in history yet", why=refusal.message),)
        return tuple(
            ImportGap(what=path, why=UNSTABLE_REASON, hint=EXPORT_AGAIN_HINT) for path in sorted(moving)
        )

    async def import_archive(
        self, archive: Path, request: ImportMemory, on_progress: Callable[[ImportProgress], None]
    ) -> MemoryImport:
        """Bring an archive in. Nobody packs meanwhile; others read and write."""
        async with self._maintenance.pack_lock, _scratch_folder(archive.parent) as scratch:
            intake = ArchiveImport(archive, scratch, request, self._rule_for(request), on_progress)
            try:
                await self._run_import(intake, request)
                version = await self._executor.read_history(lambda repository: str(repository.head()))
                return await anyio.to_thread.run_sync(intake.report, version, self._context.installed())
            except InvalidArchive as error:
                raise Refusal("bad_archive", f"{error} {error.hint or ''}".strip()) from error
            finally:
                intake.close()

    async def _run_import(self, intake: ArchiveImport, request: ImportMemory) -> None:
        await anyio.to_thread.run_sync(intake.open, self._components.layout.root)
        if request.dry_run:
            await anyio.to_thread.run_sync(intake.preview, self._components.layout.root)
            return
        await anyio.to_thread.run_sync(
            intake.install_objects, self._components.layout, self._components.packer
        )
        for part in intake.operations():
            await self._group_commit.submit(part)
        await self._executor.write(lambda: intake.keep_branches(self._components.repository))

    def _rule_for(self, request: ImportMemory) -> Rule:
        """Return this memory's rules as a function of one file."""

        def rule(path: str, data: bytes) -> bytes:
            for one in self._components.committer.rules:
                change = one(Change({path: data}, actor=request.actor, reason="import"))
                data = change.files[path] or b""
            return data

        return rule

    async def load_conversation(self, block: str, conversation: str, *, after: int) -> ConversationSlice:
        """A conversation's messages."""
        places = conversation_paths(block, conversation)
        return await self._executor.read(lambda: self._present.conversation(places, after))

    async def list_conversations(self, query: ListConversations) -> ConversationPage:
        """A page of conversations."""
        return await self._executor.query_index(
            lambda connection: list_conversations(connection, self._components.index.stems, query)
        )

    async def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """A conversation by its id alone."""
        return await self._executor.query_index(
            lambda connection: find_conversation(connection, conversation)
        )

    async def query(self, question: IndexQuery[T]) -> T:
        """Ask the index about chunks, when it has everything that was committed; it is given what a blob holds."""
        repository = self._components.index.repository
        return await self._executor.query_index(
            lambda connection: question(connection, lambda blob: repository.data(repository.object_id(blob)))
        )

    async def _commit(self, operations: Sequence[WriteOperation]) -> CommitResult:
        result = await self._executor.write(lambda: self._components.committer.commit(operations))
        for changed in result.commits:
            self._context.on_change(changed)
        if result.commits:
            self._maintenance.note_commit()
        return result

    # Care ----------------------------------------------------------------------------------------------------

    async def trace(self, target: str) -> Purge:
        """Return everything that a purge target stands for, after committing external edits."""
        wanted = parse_target(target)
        await self._commit_external_edits()

        def look(repository: Repository) -> Purge:
            head = repository.head()
            past = None if head is None else VersionIndex(repository.git, head)
            return (
                Purge(target=target)
                if past is None
                else PurgeScan(past, wanted, Purge(target=target)).run(_keep_unchanged).purge
            )

        return await self._executor.read_history(look)

    async def purge(self, purge: Purge, without: FileFilter, *, actor: str) -> PurgeResult:
        """Take something out of memory and all of history. Nobody writes or packs meanwhile."""
        wanted = parse_target(purge.target)
        async with self._maintenance.pack_lock:
            with anyio.CancelScope(shield=True):
                purged, commits = await self._executor.write(
                    lambda: PurgeJob(self._components, self._maintenance, sync=self._context.fsync).run(
                        wanted, purge, without, actor
                    )
                )
                await self._executor.use_index(self._components.index.drop)
                await self._executor.use_path_index(self._components.path_index.drop)
        for changed in commits:
            self._context.on_change(changed)
        self._maintenance.note_commit()
        if self._components.backfill is not None:
            await self._executor.query_index(self._components.backfill.prune)
        return purged

    async def check(self, *, repair: bool) -> tuple[MemoryFinding, ...]:
        """Look whether everything is whole, while nobody writes."""
        databases = tuple(self._components.cache / name for name in DATABASES)
        examination = IntegrityCheck(
            self._components.layout, self._components.worktree, databases, repair=repair
        )
        async with self._maintenance.pack_lock:
            found = await self._executor.write(examination.run)
            await self._executor.reopen_repositories()
        return tuple(found)


@asynccontextmanager
async def _scratch_folder(parent: Path) -> AsyncIterator[Path]:
    """Yield a new folder for an import. A thread removes it, because an archive may have very many files."""
    folder = tempfile.TemporaryDirectory(prefix=".import-", dir=parent)
    try:
        yield Path(folder.name)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(folder.cleanup)


def _keep_unchanged(path: str, data: bytes, purge: Purge) -> bytes | None:
    return data


def _vector_progress(now: VectorProgress) -> IndexProgress:
    return IndexProgress(done=now.passages - now.missing, total=now.passages, stage="vectors")


def _normalize_paths(paths: Mapping[str, T]) -> dict[str, T]:
    return {normalize_path(path): value for path, value in paths.items()}
