"""Examining a root that no memory worker holds, also one that none can open."""

from pathlib import Path

from trunkline.api.store import MemoryFinding
from trunkline_git_store.fsck.integrity_check import IntegrityCheck
from trunkline_git_store.fsync import Syncer
from trunkline_git_store.lock import RootLock
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.worktree import Worktree

DATABASES = ("memory.db", "memory-history.db")
"""The derived files in the cache folder."""


def check_root(root: Path, cache: Path, *, mend: bool) -> tuple[MemoryFinding, ...]:
    """Look at everything, holding the root meanwhile.

    Raises:
        StorageError: another process holds the root.
        OSError: the root cannot be read or written.
    """
    places = RootLayout(root.resolve())
    if not places.git.is_dir():
        said = f"{root} gets its history on the first start"
        return (MemoryFinding(id="git.history", status="ok", summary=said),)
    places.stage.mkdir(parents=True, exist_ok=True)
    lock, syncer = RootLock(places.lock), Syncer(enabled=False)
    lock.acquire(places.root)
    worktree = Worktree(places.root, places.stage, syncer)
    try:
        databases = tuple(cache / name for name in DATABASES)
        return tuple(IntegrityCheck(places, worktree, databases, mend=mend).run())
    finally:
        worktree.close()
        syncer.close()
        lock.release()
