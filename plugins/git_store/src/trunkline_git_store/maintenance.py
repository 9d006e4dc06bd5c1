"""The maintenance of an open store: index, embed, commit external edits, refresh git's index, pack."""

import logging
import time

import anyio
import anyio.to_thread
import apsw
import pygit2

from trunkline.api.bus import Backoff, Refusal
from trunkline.api.memory import OWNER
from trunkline_git_store import heap
from trunkline_git_store.components import StoreComponents
from trunkline_git_store.executor import StoreExecutor
from trunkline_git_store.file_stability import RECHECK_SECONDS
from trunkline_git_store.group_commit import GroupCommit
from trunkline_git_store.operations import CommitExternalEdits

_log = logging.getLogger(__name__)

SCAN_INTERVAL = 0.5
"""Seconds between two scans for external edits, for a memory of ordinary size."""

PACK_INTERVAL = 30.0
INDEX_DELAY = 0.5
"""Seconds for which the search index gathers changes. A query sees all of them, because the index is updated
first."""

RETRY_DELAY, MAX_RETRY_DELAY = 1.0, 60.0
"""Seconds until the index or the vectors are updated again after a failure. For the vectors, each pause is twice as
long as the one before."""

GIT_INDEX_DELAY = 0.5
"""Seconds that git's index may lag behind the last commit, for a memory of ordinary size."""


class StoreMaintenance:
    """Maintains the components of one store. Whoever holds ``pack_lock`` prevents the packing of history."""

    def __init__(
        self, components: StoreComponents, executor: StoreExecutor, group_commit: GroupCommit
    ) -> None:
        self.pack_lock = anyio.Lock()
        self._components = components
        self._executor = executor
        self._group_commit = group_commit
        self._changed = anyio.Event()
        self._moved = anyio.Event()
        self._exposed: pygit2.Oid | None = None

    async def run(self) -> None:
        """Maintain the store until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._index_loop)
            group.start_soon(self._vector_loop)
            group.start_soon(self._git_index_loop)
            group.start_soon(self._scan_loop)
            group.start_soon(self._pack_loop)

    def note_commit(self) -> None:
        """There is a new commit."""
        self._changed.set()
        self._moved.set()

    def note_rewrite(self) -> None:
        """Forget what git's index holds, because history was replaced."""
        self._exposed = None

    async def pack(self, *, now: bool = False) -> None:
        """Pack loose objects when there are many, or ``now``, and join packs when there are many."""
        packer = self._components.packer
        async with self.pack_lock:
            if now or await anyio.to_thread.run_sync(packer.is_due):
                await anyio.to_thread.run_sync(packer.pack_loose)
                heap.release_memory()
            crowd = await anyio.to_thread.run_sync(packer.small_packs)
            if crowd:
                older = await anyio.to_thread.run_sync(packer.merge, crowd)
                await self._executor.reopen_repositories()
                await anyio.to_thread.run_sync(packer.remove, older)
                heap.release_memory()

    def save_caches(self) -> None:
        """Save the caches for a later start and for ``git status``. Runs in the writer's thread."""
        self._components.stat_cache.save()
        self.refresh_git_index()

    def refresh_git_index(self) -> None:
        """Tell git's own index of the last commit. Runs where writes run."""
        repository = self._components.repository
        try:
            head = repository.head()
            if head is None or head == self._exposed:
                return
            repository.refresh_git_index()
            self._exposed = head
        except (OSError, KeyError, pygit2.GitError) as error:
            _log.warning("the git index was not updated: %s", error)

    async def _index_loop(self) -> None:
        while True:
            try:
                await self._executor.use_index(self._components.index.catch_up)
                await self._executor.use_path_index(self._components.path_index.catch_up)
            except (apsw.Error, pygit2.GitError, OSError, KeyError) as error:
                _log.warning("the memory index is behind and will be updated later: %s", error)
                await anyio.sleep(RETRY_DELAY)
                continue
            await self._changed.wait()
            await anyio.sleep(INDEX_DELAY)
            self._changed = anyio.Event()

    async def _vector_loop(self) -> None:
        """Compute the missing vectors after each change. After a failure, try again without a change."""
        backoff = Backoff(RETRY_DELAY, MAX_RETRY_DELAY)
        while (backfill := self._components.backfill) is not None:
            changed = self._changed
            try:
                await backfill.run(self._executor.query_index)
                await self._executor.query_index(backfill.prune)
            except (Refusal, apsw.Error, pygit2.GitError, OSError, KeyError) as error:
                _log.warning("the vectors are behind and will be computed later: %s", error)
                await backoff.sleep()
                continue
            backoff.reset()
            await anyio.sleep(INDEX_DELAY)
            await changed.wait()

    async def _git_index_loop(self) -> None:
        """Update git's own index soon after a commit. An outdated index makes a person's ``git status`` show changes
        that nobody made, and their ``git commit`` would undo the commit."""
        while True:
            await self._moved.wait()
            self._moved = anyio.Event()
            began = time.monotonic()
            await self._executor.write(self.refresh_git_index)
            await anyio.sleep(max(GIT_INDEX_DELAY, 20 * (time.monotonic() - began)))

    async def commit_external_edits(self) -> frozenset[str]:
        """Take in edits by hand, as far as they are at rest; returns the files that are still being written.

        Raises:
            Refusal: they could not be taken in.
        """
        await self._group_commit.submit(CommitExternalEdits(actor=OWNER))
        if waiting := self._components.committer.unstable_files():
            await anyio.sleep(RECHECK_SECONDS)
            await self._group_commit.submit(CommitExternalEdits(actor=OWNER, paths=tuple(sorted(waiting))))
        return self._components.committer.unstable_files()

    async def _scan_loop(self) -> None:
        """Look for edits by hand; the more there is to look at, the less often. What was being written is looked at
        again soon."""
        left = SCAN_INTERVAL
        while True:
            waiting = tuple(sorted(self._components.committer.unstable_files()))
            pause = min(left, RECHECK_SECONDS) if waiting else left
            await anyio.sleep(pause)
            left -= pause
            took = await self._scan(waiting if left > 0 else ("",))
            left = max(0.0, left - took) if left > 0 else max(SCAN_INTERVAL, 50 * took)

    async def _scan(self, paths: tuple[str, ...]) -> float:
        """Take in what was edited in some paths; returns how many seconds that took."""
        began = time.monotonic()
        try:
            await self._group_commit.submit(CommitExternalEdits(actor=OWNER, paths=paths))
            await self._executor.write(self.save_caches)
        except Refusal as refusal:
            _log.warning("external edits could not be committed: %s", refusal.message)
        return time.monotonic() - began

    async def _pack_loop(self) -> None:
        while True:
            await anyio.sleep(PACK_INTERVAL)
            try:
                await self.pack()
            except (OSError, pygit2.GitError, KeyError) as error:
                _log.warning("history could not be packed: %s", error)
