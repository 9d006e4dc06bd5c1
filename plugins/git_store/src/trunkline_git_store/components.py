"""The components that a store opens and closes: the root, its history, the search index, the path index."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pygit2

from trunkline import StorageError
from trunkline.api.memory import Embedder
from trunkline_git_store.committer import Committer
from trunkline_git_store.conversations import ConversationCache
from trunkline_git_store.fsync import Syncer
from trunkline_git_store.history.path_index import PathIndex
from trunkline_git_store.index.search_index import SearchIndex
from trunkline_git_store.packer import Packer
from trunkline_git_store.purge.object_sweeper import ObjectSweeper
from trunkline_git_store.repository import Repository
from trunkline_git_store.root_setup import open_root
from trunkline_git_store.stat_cache import StatCache
from trunkline_git_store.vectors.backfill import VectorBackfill
from trunkline_git_store.vectors.vector_store import VectorStore
from trunkline_git_store.worktree import Worktree

SCRATCH_PATTERNS = (
    ".import-*",
    ".export-*",
    ".index-*",
    "import-*.tar",
    "memory-*.tar",
    ".memory-*.tar.part",
)


class StoreComponents:
    """The open resources of one store, until ``close``.

    Raises:
        StorageError: the root cannot be locked or repaired.
    """

    def __init__(self, root: Path, cache: Path, *, sync: bool, embedder: Embedder | None) -> None:
        self.sync = sync
        self.cache = cache
        self._resources = ExitStack()
        try:
            self._open(root, embedder)
            self._recover()
        except BaseException:
            self.close()
            raise

    def _open(self, root: Path, embedder: Embedder | None) -> None:
        cache, held = self.cache, self._resources
        self.layout, lock = open_root(root)
        held.callback(lock.release)
        self.syncer = Syncer(self.sync)
        held.callback(self.syncer.close)
        self.worktree = Worktree(self.layout.root, self.layout.stage, self.syncer)
        held.callback(self.worktree.close)
        self.repository = Repository(self.layout.root, sync=self.sync)
        held.callback(self.repository.close)
        self.packer = Packer(self.layout.root, self.syncer)
        self.sweeper = ObjectSweeper(self.layout, self.packer, self.syncer)
        self.stat_cache = StatCache(cache / "memory-files.msgpack")
        self.stat_cache.load()
        self.conversations = ConversationCache()
        self.index_file = cache / "memory.db"
        self.index = SearchIndex(self.layout.root, self.index_file, self.conversations)
        held.callback(self.index.close)
        self.backfill = (
            None
            if embedder is None
            else VectorBackfill(
                embedder, VectorStore(cache / "memory-vectors.db", embedder.model), self.index
            )
        )
        self.path_index = PathIndex(self.layout.root, cache / "memory-history.db")
        held.callback(self.path_index.close)
        self.committer = Committer(self.layout, self.repository, self.worktree, self.syncer, self.stat_cache)
        remove_scratch_files(cache)

    def _recover(self) -> None:
        try:
            self.committer.recover()
            self.worktree.clear_stage()
            if self.sweeper.is_unfinished():
                self.sweeper.sweep()
        except (OSError, pygit2.GitError) as error:
            raise StorageError(
                f"Memory cannot start (working files): {self.layout.root} could not be repaired ({error}).",
                hint="Free space or give write permission, then start again; nothing was lost.",
            ) from error

    def close(self) -> None:
        """Close all components."""
        self._resources.close()


def remove_scratch_files(cache: Path) -> None:
    """Remove what a killed process left. Only for who holds the memory root."""
    for pattern in SCRATCH_PATTERNS:
        for left in cache.glob(pattern):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
