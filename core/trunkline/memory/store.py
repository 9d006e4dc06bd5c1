"""The built-in store: a git repository of plain files, behind ``MemoryStore``. Joins the parts; none of their work.

Threads: one at a time writes (``_writing``), one at a time uses the index (``_indexing``), one at a time looks into
the past (``_looking_back``), a few read.
"""

import logging
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import apsw
import msgspec
import pygit2

from trunkline.abc.memory import NOWHERE, Change, MemoryStore, Purged
from trunkline.archives.reading import BadArchive
from trunkline.errors import StorageError
from trunkline.memory import heap
from trunkline.memory.batch import OWNER
from trunkline.memory.care.examination import Examination
from trunkline.memory.care.offline import DATABASES
from trunkline.memory.carrying import scratch
from trunkline.memory.carrying.derived import copied
from trunkline.memory.carrying.export import export
from trunkline.memory.carrying.intake import Intake
from trunkline.memory.carrying.merging import Rule
from trunkline.memory.committer import Committer, Result
from trunkline.memory.conversations import (
    AppendMessages,
    Conversation,
    ConversationCache,
    conversation_places,
    parse,
)
from trunkline.memory.durable import Syncer
from trunkline.memory.grouping import Grouping
from trunkline.memory.index.follower import Index
from trunkline.memory.index.stats import index_stats
from trunkline.memory.packing import Packer
from trunkline.memory.past.blame import blame
from trunkline.memory.past.changes import changes
from trunkline.memory.past.difference import difference
from trunkline.memory.past.trail import Steps, Trail
from trunkline.memory.past.undo import TakeBack, returning, undoing
from trunkline.memory.paths import checked, folder, refused
from trunkline.memory.places import Places
from trunkline.memory.prepare import take_root
from trunkline.memory.purging.rewriting import Rewriting
from trunkline.memory.purging.sweeping import Sweeper
from trunkline.memory.purging.target import Target, target_of
from trunkline.memory.repository import Repository, commit_time, entry_at
from trunkline.memory.search.content import search_content
from trunkline.memory.search.conversations import find_conversation, list_conversations
from trunkline.memory.search.meaning import Meaning
from trunkline.memory.search.names import search_names
from trunkline.memory.stamps import Stamps
from trunkline.memory.vectors.filling import Filling, Progress
from trunkline.memory.vectors.space import Space
from trunkline.memory.wishes import Absorb, Wish, WriteFiles, deleting, editing, moving
from trunkline.memory.worktree import Stamp, Worktree, not_found
from trunkline.messages.conversation import (
    AppendConversation,
    ConversationPage,
    ConversationSlice,
    ConversationSummary,
    ListConversations,
)
from trunkline.messages.indexing import IndexProgress, IndexStats
from trunkline.messages.memory import (
    ImportMemory,
    ImportProgress,
    MemoryBlame,
    MemoryChange,
    MemoryDifference,
    MemoryEntry,
    MemoryFile,
    MemoryFinding,
    MemoryHit,
    MemoryImport,
    MemoryReverted,
    RevertMemory,
    SearchMemory,
)
from trunkline.seed import SEED
from trunkline_bus import Refusal, Scope

_log = logging.getLogger(__name__)

T = TypeVar("T")

SWEEP_SECONDS = 5.0
CARE_SECONDS = 30.0
INDEX_SECONDS = 0.5
"""How long the search index gathers changes. Whoever asks it sees all of them: it is brought up first."""

EXPOSE_SECONDS = 0.5
"""How long git's index may lag behind the last commit, on a memory of ordinary size."""

PLATFORM = "trunkline"
"""The actor of what the platform itself writes."""


class GitMemoryStore(MemoryStore):
    """Memory as a git repository. ``window`` is how long writes wait for others, in seconds; without ``sync`` they are
    not brought to the disk before they are acknowledged."""

    def __init__(self, *, window: float = 0.004, sync: bool = True) -> None:
        self._window = window
        self._sync = sync
        self._held = ExitStack()
        self._writing = anyio.CapacityLimiter(1)
        self._indexing = anyio.CapacityLimiter(1)
        self._looking_back = anyio.CapacityLimiter(1)
        self._reading = anyio.CapacityLimiter(8)
        self._care = anyio.Lock()
        self._changed = anyio.Event()
        self._moved = anyio.Event()
        self._grouping = Grouping(self._commit, window)
        self._conversations = ConversationCache()
        self._exposed: pygit2.Oid | None = None

    # Life ----------------------------------------------------------------------------------------------------

    async def open(self, root: Path, cache: Path) -> None:
        """Take the root, mend what a killed process left, take in edits made by hand. See ``MemoryStore.open``."""
        try:
            await self._thread(self._writing, lambda: self._open(root, cache))
            await self._first_commit()
            self._committer.rules = self.rules
        except BaseException:
            self._held.close()
            raise

    def _open(self, root: Path, cache: Path) -> None:
        places, lock = take_root(root)
        self._cache = cache
        self._held.callback(lock.release)
        self._places: Places = places
        self._syncer = Syncer(self._sync)
        self._held.callback(self._syncer.close)
        self._worktree = Worktree(places.root, places.stage, self._syncer)
        self._held.callback(self._worktree.close)
        self._repository = Repository(places.root, sync=self._sync)
        self._held.callback(self._repository.close)
        self._packer = Packer(places.root, self._syncer)
        self._sweeper = Sweeper(places, self._packer, self._syncer)
        self._stamps = Stamps(cache / "memory-files.msgpack")
        self._stamps.load()
        self._index_file = cache / "memory.db"
        self._index = Index(places.root, self._index_file, self._conversations)
        self._held.callback(self._index.close)
        self._filling = self._new_filling(cache / "memory-vectors.db")
        self._trail = Trail(places.root, cache / "memory-history.db")
        self._held.callback(self._trail.close)
        self._committer = Committer(places, self._repository, self._worktree, self._syncer, self._stamps)
        scratch.clear(cache)
        self._mend()

    def _new_filling(self, file: Path) -> Filling | None:
        if self.embedder is None:
            return None
        return Filling(self.embedder, Space(file, self.embedder.model), self._index)

    def _mend(self) -> None:
        try:
            self._committer.settle()
            self._worktree.clear_stage()
            if self._sweeper.unfinished():
                self._sweeper.sweep()
        except (OSError, pygit2.GitError) as error:
            raise StorageError(
                f"Memory cannot start (working files): {self._places.root} could not be mended ({error}).",
                hint="Free space or give write permission, then start again; nothing was lost.",
            ) from error

    async def _first_commit(self) -> None:
        """Take in what was edited by hand; in a memory without history also write the first files."""
        wishes: list[Wish] = [Absorb(actor=OWNER)]
        if self._repository.head() is None:
            missing: dict[str, bytes | None] = {
                path: data for path, data in SEED.items() if self._worktree.status(path) is None
            }
            wishes.append(WriteFiles(actor=PLATFORM, reason="Begin this memory", files=missing))
        result = await self._commit(wishes)
        for outcome in result.outcomes:
            if isinstance(outcome, Refusal):
                raise StorageError(
                    f"Memory cannot start (version history): {self._places.root}: {outcome.message}",
                    hint="Look at the log for the reason.",
                )

    async def aclose(self) -> None:
        """Finish what is waiting, then let go of the root."""
        with anyio.CancelScope(shield=True):
            await self._grouping.idle()
            await self._thread(self._writing, self._leave_tidy)
            await self._thread(self._indexing, self._held.close)

    async def tend(self) -> None:
        """Keep the index abreast, take in edits made by hand, pack. Runs until it is cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_indexed)
            group.start_soon(self._keep_filled)
            group.start_soon(self._keep_exposed)
            group.start_soon(self._keep_swept)
            group.start_soon(self._keep_packed)

    # Changing ------------------------------------------------------------------------------------------------

    async def change(self, change: Change, *, expected: dict[str, str | None] | None = None) -> str:
        """Commit files together. See ``MemoryStore.change``."""
        wish = WriteFiles(
            actor=change.actor,
            reason=change.reason,
            scope=change.scope,
            files=_checked(change.files),
            expected=_checked(expected or {}),
        )
        return (await self._grouping.submit(wish)).version

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
        wish = editing(path, old, new, actor=actor, reason=reason, scope=scope, expected=expected)
        return (await self._grouping.submit(wish)).version

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
        wish = moving(source, target, actor=actor, reason=reason, scope=scope, expected=expected)
        return (await self._grouping.submit(wish)).version

    async def delete(
        self, path: str, *, actor: str, reason: str, scope: Scope = NOWHERE, expected: str | None = None
    ) -> str:
        """Delete a file or folder."""
        wish = deleting(path, actor=actor, reason=reason, scope=scope, expected=expected)
        return (await self._grouping.submit(wish)).version

    async def revert(self, revert: RevertMemory, *, scope: Scope = NOWHERE) -> MemoryReverted:
        """Take a change back, or go back to a version, as a commit of its own."""
        plain = folder(revert.path)
        if revert.to is None:
            found = await self._look_back(lambda steps: undoing(steps, plain, revert.version))
        else:
            to = revert.to
            found = await self._look_back(lambda steps: returning(steps, plain, to))
        wish = TakeBack(actor=revert.actor, reason=revert.reason, scope=scope, undoing=found)
        done = await self._grouping.submit(wish)
        return MemoryReverted(paths=wish.touches, version=done.version, undone=found.version)

    async def append_conversation(self, append: AppendConversation) -> int:
        """Append the messages that are not stored yet."""
        return (await self._grouping.submit(AppendMessages.of(append, self._conversations))).count

    # Reading -------------------------------------------------------------------------------------------------

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        """A file's text, now or at a version."""
        plain = checked(path)
        if version is None:
            return await self._thread(self._reading, lambda: self._read_now(plain))
        return await self._reader(lambda repository: _read_version(repository, plain, version))

    async def read_many(self, paths: Sequence[str]) -> Sequence[MemoryFile | Refusal]:
        """Several files, each or why it cannot be read; all by one thread."""
        return await self._thread(self._reading, lambda: [self._read_or_not(path) for path in paths])

    async def list(self, path: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Names under a folder."""
        plain = folder(path)
        found = await self._thread(self._reading, lambda: self._worktree.entries(plain, recursive=recursive))
        return tuple(found)

    async def search(self, query: SearchMemory) -> tuple[MemoryHit, ...]:
        """Search names or text; every change acknowledged before the call is seen."""
        plain = msgspec.structs.replace(query, path=folder(query.path), limit=max(0, query.limit))
        if plain.limit == 0:
            return ()
        if plain.kind == "filename":
            entries = await self.list("", recursive=True)
            return search_names((entry.path for entry in entries if entry.kind == "file"), plain)
        meaning = await self._meaning(plain.query)
        return await self._ask(lambda connection: search_content(connection, self._index, plain, meaning))

    async def _meaning(self, text: str) -> Meaning | None:
        """What is looked for, as a vector; None where words must do."""
        if self._filling is None or not text.strip():
            return None
        vector = await self._filling.vector(text)
        return None if vector is None else Meaning(self._filling.space, vector, self._filling.embedder.least)

    @property
    def vectors(self) -> float | None:
        """How far the vectors are."""
        return None if self._filling is None else self._filling.progress.share

    async def index_stats(self) -> IndexStats:
        """What the index holds."""
        return await self._ask(self._stats)

    async def reindex(self, told: Callable[[IndexProgress], None], *, vectors: bool = False) -> IndexStats:
        """Make the index anew, then the vectors that are missing. Searches wait for the index."""

        def rebuild() -> None:
            total = self._index.size()
            self._index.rebuild(lambda done: told(IndexProgress(done=done, total=total)))
            if vectors and self._filling is not None:
                self._index.database.use(self._filling.space.forget)

        await self._thread(self._indexing, rebuild)
        if self._filling is not None:
            await self._filling.fill(self._ask, told=lambda now: told(_vectors_made(now)))
        return await self.index_stats()

    def _stats(self, connection: apsw.Connection) -> IndexStats:
        filling = self._filling
        return index_stats(
            connection, (self._index_file,), None if filling is None else filling.stats(connection)
        )

    async def history(self, path: str, *, limit: int) -> tuple[MemoryChange, ...]:
        """The changes of a file or folder."""
        plain = folder(path)
        found = await self._look_back(lambda steps: changes(steps, plain, limit))
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
        """Who wrote each line of a file."""
        plain = checked(path)
        return await self._look_back(lambda steps: blame(steps, plain, version, first, last, mainline))

    async def diff(self, path: str, old: str | None = None, new: str | None = None) -> MemoryDifference:
        """What differs between two versions."""
        plain = folder(path)
        return await self._look_back(lambda steps: difference(steps, plain, old, new))

    async def export(self, target: Path, *, derived: bool = False) -> int:
        """Write the archive."""

        def write() -> int:
            with ExitStack() as held:
                index = held.enter_context(copied(self._index_file)) if derived else None
                return export(self._places.root, target, plugins=self.installed().plugins, derived=index)

        if derived:
            await self._ask(lambda connection: None)
        async with self._care:
            return await anyio.to_thread.run_sync(write)

    async def bring_in(
        self, archive: Path, wish: ImportMemory, told: Callable[[ImportProgress], None]
    ) -> MemoryImport:
        """Bring an archive in. Nobody packs meanwhile; others read and write."""
        async with self._care:
            with tempfile.TemporaryDirectory(prefix=".import-", dir=archive.parent) as scratch:
                intake = Intake(archive, Path(scratch), wish, self._rule_for(wish), told)
                try:
                    await self._take_in(intake, wish)
                    version = await self._reader(lambda repository: str(repository.head()))
                    return await anyio.to_thread.run_sync(intake.report, version, self.installed())
                except BadArchive as error:
                    raise Refusal("bad_archive", f"{error} {error.hint or ''}".strip()) from error
                finally:
                    intake.close()

    async def _take_in(self, intake: Intake, wish: ImportMemory) -> None:
        await anyio.to_thread.run_sync(intake.open, self._places.root)
        if wish.dry_run:
            await anyio.to_thread.run_sync(intake.preview, self._places.root)
            return
        await anyio.to_thread.run_sync(intake.take_objects, self._places, self._packer)
        for part in intake.wishes():
            await self._grouping.submit(part)
        await self._thread(self._writing, lambda: intake.keep_branches(self._repository))

    def _rule_for(self, wish: ImportMemory) -> Rule:
        """What this memory's rules make of one file."""

        def rule(path: str, data: bytes) -> bytes:
            for one in self._committer.rules:
                change = one(Change({path: data}, actor=wish.actor, reason="import"))
                data = change.files[path] or b""
            return data

        return rule

    async def load_conversation(self, block: str, conversation: str, *, after: int) -> ConversationSlice:
        """A conversation's messages."""
        places = conversation_places(block, conversation)
        return await self._thread(self._reading, lambda: self._load(places, after))

    async def list_conversations(self, query: ListConversations) -> ConversationPage:
        """A page of conversations."""
        return await self._ask(lambda connection: list_conversations(connection, self._index.stems, query))

    async def find_conversation(self, conversation: str) -> ConversationSummary | None:
        """A conversation by its id alone."""
        return await self._ask(lambda connection: find_conversation(connection, conversation))

    def _read_or_not(self, path: str) -> MemoryFile | Refusal:
        try:
            return self._read_now(checked(path))
        except Refusal as refusal:
            return refusal

    def _read_now(self, path: str) -> MemoryFile:
        data, status = self._worktree.read(path)
        return MemoryFile(
            path=path,
            content=_text(path, data),
            hash=str(pygit2.hash(data)),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        )

    def _load(self, places: Sequence[str], after: int) -> ConversationSlice:
        for path in places:
            status = self._worktree.probe(path)
            if status is not None:
                return self._conversation(path, status).slice(after)
        return ConversationSlice(exists=False)

    def _conversation(self, path: str, status: os.stat_result) -> Conversation:
        blob = self._stamps.blob(path, Stamp.of(status))
        known = self._conversations.get(str(blob)) if blob is not None else None
        return known or self._parse(path)

    def _parse(self, path: str) -> Conversation:
        data = self._worktree.read(path)[0]
        blob = str(pygit2.hash(data))
        known = self._conversations.get(blob)
        if known is None:
            known = parse(path, data)
            self._conversations.put(blob, known)
        return known

    # Threads -------------------------------------------------------------------------------------------------

    async def _thread(self, limiter: anyio.CapacityLimiter, job: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(job, limiter=limiter)

    async def _reader(self, job: Callable[[Repository], T]) -> T:
        """Read history with a repository handle of one's own."""

        def read() -> T:
            repository = Repository(self._places.root)
            try:
                return job(repository)
            finally:
                repository.close()

        return await self._twice(lambda: self._thread(self._reading, read))

    async def _twice(self, look: Callable[[], Awaitable[T]]) -> T:
        """Look again, afresh, where history seems to lack something: another git may have packed it meanwhile."""
        try:
            return await look()
        except (KeyError, pygit2.GitError):
            await self._look_afresh()
        try:
            return await look()
        except (KeyError, pygit2.GitError) as error:
            raise _lost(error) from error

    async def _look_back(self, question: Callable[[Steps], T]) -> T:
        """Ask about the past, when everything that was committed is known there."""
        return await self._twice(lambda: self._thread(self._looking_back, lambda: self._trail.ask(question)))

    async def _ask(self, question: Callable[[apsw.Connection], T]) -> T:
        """Ask the index, when it has everything that was committed."""

        def ask() -> T:
            self._index.catch_up()
            return self._index.database.use(question)

        return await self._thread(self._indexing, ask)

    async def ask(self, question: Callable[[apsw.Connection, Callable[[str], bytes]], T]) -> T:
        """Ask the index about chunks, when it has everything that was committed; it is given what a blob holds."""
        repository = self._index.repository
        return await self._ask(
            lambda connection: question(connection, lambda blob: repository.data(repository.object_id(blob)))
        )

    async def _commit(self, wishes: Sequence[Wish]) -> Result:
        result = await self._thread(self._writing, lambda: self._committer.commit(wishes))
        for changed in result.commits:
            self.on_change(changed)
        if result.commits:
            self._changed.set()
            self._moved.set()
        return result

    # Care ----------------------------------------------------------------------------------------------------

    async def _keep_indexed(self) -> None:
        while True:
            try:
                await self._thread(self._indexing, self._index.catch_up)
                await self._thread(self._looking_back, self._trail.catch_up)
            except (apsw.Error, pygit2.GitError, OSError, KeyError) as error:
                _log.warning("the memory index is behind and will be brought up later: %s", error)
                await anyio.sleep(1)
                continue
            await self._changed.wait()
            await anyio.sleep(INDEX_SECONDS)
            self._changed = anyio.Event()

    async def _keep_filled(self) -> None:
        """The vectors that are missing, whenever something changed."""
        while self._filling is not None:
            changed = self._changed
            try:
                await self._filling.fill(self._ask)
                await self._ask(self._filling.prune)
            except (apsw.Error, pygit2.GitError, OSError, KeyError) as error:
                _log.warning("the vectors are behind and will be made later: %s", error)
            await anyio.sleep(INDEX_SECONDS)
            await changed.wait()

    async def _keep_exposed(self) -> None:
        """Soon after a commit git's own index is told of it: an index that lags makes a person's ``git status`` show
        changes that nobody made, and their ``git commit`` would undo them."""
        while True:
            await self._moved.wait()
            self._moved = anyio.Event()
            began = time.monotonic()
            await self._thread(self._writing, self._expose)
            await anyio.sleep(max(EXPOSE_SECONDS, 20 * (time.monotonic() - began)))

    async def _keep_swept(self) -> None:
        """Look for edits by hand; the more there is to look at, the less often."""
        pause = SWEEP_SECONDS
        while True:
            await anyio.sleep(pause)
            began = time.monotonic()
            try:
                await self._grouping.submit(Absorb(actor=OWNER))
                await self._thread(self._writing, self._leave_tidy)
            except Refusal as refusal:
                _log.warning("edits made by hand could not be taken in: %s", refusal.message)
            pause = max(SWEEP_SECONDS, 50 * (time.monotonic() - began))

    async def _keep_packed(self) -> None:
        while True:
            await anyio.sleep(CARE_SECONDS)
            try:
                await self.pack()
            except (OSError, pygit2.GitError, KeyError) as error:
                _log.warning("history could not be packed: %s", error)

    async def pack(self, *, now: bool = False) -> None:
        """Pack loose objects when there are many, or ``now``, and join packs when there are many."""
        async with self._care:
            if now or await anyio.to_thread.run_sync(self._packer.due):
                await anyio.to_thread.run_sync(self._packer.pack_loose)
                heap.give_back()
            crowd = await anyio.to_thread.run_sync(self._packer.crowd)
            if crowd:
                older = await anyio.to_thread.run_sync(self._packer.join, crowd)
                await self._look_afresh()
                await anyio.to_thread.run_sync(self._packer.remove, older)
                heap.give_back()

    async def purge(self, target: str) -> Purged:
        """Take something out of all of history. Nobody writes or packs meanwhile."""
        wanted = target_of(target)
        async with self._care:
            with anyio.CancelScope(shield=True):
                purged = await self._thread(self._writing, lambda: self._purge(wanted))
                await self._thread(self._indexing, self._index.drop)
                await self._thread(self._looking_back, self._trail.drop)
        return purged

    def _purge(self, target: Target) -> Purged:
        self._expose()
        rewriting = Rewriting(self._repository, target)
        moves = rewriting.run()
        if moves:
            if self._sync:
                os.sync()
            self._sweeper.announce()
            self._repository.move(moves)
            self._sweeper.sweep()
            self._repository.reopen()
            self._exposed = None
        return Purged(tuple(sorted(rewriting.paths)), rewriting.rewritten)

    async def examine(self, *, mend: bool) -> tuple[MemoryFinding, ...]:
        """Look whether everything is whole, while nobody writes."""
        databases = tuple(self._cache / name for name in DATABASES)
        examination = Examination(self._places, self._worktree, databases, mend=mend)
        async with self._care:
            found = await self._thread(self._writing, examination.run)
            await self._look_afresh()
        return tuple(found)

    async def _look_afresh(self) -> None:
        """Let every handle see which packs there are."""
        await self._thread(self._writing, self._repository.reopen)
        await self._thread(self._indexing, self._index.repository.reopen)
        await self._thread(self._looking_back, self._trail.repository.reopen)

    def _leave_tidy(self) -> None:
        """What a later start and a person's ``git status`` are glad of."""
        self._stamps.save()
        self._expose()

    def _expose(self) -> None:
        head = self._repository.head()
        if head is None or head == self._exposed:
            return
        try:
            self._repository.refresh_index()
            self._exposed = head
        except (OSError, pygit2.GitError) as error:
            _log.warning("the git index was left as it is: %s", error)


def _vectors_made(now: Progress) -> IndexProgress:
    return IndexProgress(done=now.passages - now.missing, total=now.passages, stage="vectors")


def _lost(error: Exception) -> Refusal:
    """What history should have cannot be read."""
    _log.error("history cannot be read: %s", error)
    return Refusal("not_found", "That part of history cannot be read any more. Run: trunkline memory doctor")


def _read_version(repository: Repository, path: str, version: str) -> MemoryFile:
    commit = repository.version(version)
    entry = None if commit is None else entry_at(commit.tree, path)
    if commit is None:
        raise Refusal("not_found", f"Memory has no version {version[:64]!r}.")
    if entry is None:
        raise not_found(path)
    return MemoryFile(
        path=path,
        content=_text(path, repository.data(entry.blob)),
        hash=str(entry.blob),
        modified_at=commit_time(commit),
    )


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise refused(path, "it is not a text file") from None


def _checked(paths: Mapping[str, T]) -> dict[str, T]:
    return {checked(path): value for path, value in paths.items()}
