"""Taking a memory root: folders, the lock, a repository that works. No start without history."""

import errno
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pygit2
from pygit2.enums import RepositoryOpenFlag

from trunkline import StorageError
from trunkline.api.paths import make_private
from trunkline_git_store import heap
from trunkline_git_store.fsck.damaged_files import DamagedFiles
from trunkline_git_store.fsck.object_check import broken_loose
from trunkline_git_store.fsck.repair import restore_objects
from trunkline_git_store.fsync import Syncer
from trunkline_git_store.lock import RootLock
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.worktree import Worktree

_log = logging.getLogger(__name__)

BRANCH = "main"
EXCLUDE = """# What editors and systems leave beside files; memory does not take it in.
*~
*.swp
.#*
\\#*#
.DS_Store
Thumbs.db
"""
OBJECT_CACHE_BYTES = 2 * 1024 * 1024
_STALE = 0.5
_MEND = "Run: trunkline memory doctor. Nothing was changed."


def open_root(root: Path) -> tuple[RootLayout, RootLock]:
    """Make the root if needed, hold it, and see that it can be written and has a history.

    Raises:
        StorageError: the sentence names the phase that failed: memory root, or version history.
    """
    with _phase("memory root", root):
        make_private(root)
        layout = RootLayout(root.resolve())
        _refuse_unusable_repository(layout)
        layout.stage.mkdir(parents=True, exist_ok=True)
    lock = RootLock(layout.lock)
    with _phase("memory root", root):
        lock.acquire(layout.root)
    try:
        with _phase("memory root", root):
            _try_write(layout)
        with _phase("version history", root):
            _create_history(layout)
    except BaseException:
        lock.release()
        raise
    return layout, lock


def _refuse_unusable_repository(layout: RootLayout) -> None:
    if layout.git.is_symlink() or layout.git.is_file():
        raise StorageError(
            f"Memory cannot start (version history): {layout.git} is a link or a file, not a repository of its own.",
            hint="Use a memory root that is not a linked work tree or submodule.",
        )


def _try_write(layout: RootLayout) -> None:
    """Write to the root and to the repository, as later writes will."""
    for probe in (layout.root / f".probe-{os.getpid()}", layout.state_folder / "probe"):
        try:
            with probe.open("wb") as opened:
                opened.write(b"\0" * 65_536)
                opened.flush()
                os.fsync(opened.fileno())
        finally:
            probe.unlink(missing_ok=True)


def _create_history(layout: RootLayout) -> None:
    try:
        git = pygit2.Repository(str(layout.root), RepositoryOpenFlag.NO_SEARCH)
    except pygit2.GitError as error:
        if not _is_blank(layout.git):
            raise StorageError(
                f"Memory cannot start (version history): {layout.git} is not a usable git repository ({error}).",
                hint=_MEND,
            ) from error
        git = pygit2.init_repository(str(layout.root), initial_head=BRANCH)
        (layout.git / "info").mkdir(exist_ok=True)
        (layout.git / "info" / "exclude").write_text(EXCLUDE)
    pygit2.settings.cache_max_size(OBJECT_CACHE_BYTES)
    heap.limit_arenas()
    _remove_leftovers(layout)
    _repair_objects(layout)
    _insist_on_history(git, layout)
    git.free()


def _repair_objects(layout: RootLayout) -> None:
    """Put broken loose objects aside before anybody reads them (libgit2 may never return from it), or writes the same
    content again (which git takes for stored already); what the files still hold is made again."""
    broken = list(broken_loose(layout.git / "objects"))
    if not broken:
        return
    aside = DamagedFiles(layout)
    for file in broken:
        aside.move_object(file)
    _log.warning("%d broken objects of %s were put aside in %s", len(broken), layout.git, aside.folder)
    syncer = Syncer(enabled=False)
    worktree = Worktree(layout.root, layout.stage, syncer)
    try:
        restore_objects(layout, worktree)
    finally:
        worktree.close()
        syncer.close()


def _insist_on_history(git: pygit2.Repository, layout: RootLayout) -> None:
    where = f"Memory cannot start (version history): the repository {layout.git}"
    if git.is_bare:
        raise StorageError(f"{where} is bare.", hint="Set core.bare to false, or use another memory root.")
    try:
        if git.head_is_detached:
            raise StorageError(f"{where} is on no branch.", hint="Run in the memory root: git switch main")
        if not git.head_is_unborn:
            len(git[git.head.target].peel(pygit2.Tree))
    except (pygit2.GitError, KeyError, ValueError) as error:
        raise StorageError(f"{where} is damaged ({error}).", hint=_MEND) from error


def _is_blank(git: Path) -> bool:
    """Report whether a repository folder holds no history yet (perhaps it was made and then the process died)."""
    objects = [entry for entry in (git / "objects").rglob("*") if entry.is_file()] if git.is_dir() else []
    references = [entry for entry in (git / "refs").rglob("*") if entry.is_file()] if git.is_dir() else []
    return not objects and not references and not (git / "packed-refs").exists()


def _remove_leftovers(layout: RootLayout) -> None:
    """Remove what a killed process left: half-written objects, and reference locks nobody holds any more."""
    for pattern in ("objects/tmp_object_git2_*", "objects/pack/*_git2_*", "objects/pack/*.lock"):
        for left in layout.git.glob(pattern):
            left.unlink(missing_ok=True)
    shutil.rmtree(layout.state_folder / "packing", ignore_errors=True)
    for left in (
        *layout.git.glob("HEAD.lock"),
        *layout.git.glob("refs/heads/*.lock"),
        layout.git / "index.lock",
    ):
        if left.exists():
            time.sleep(_STALE)  # a person's git, if one runs, needs less
            left.unlink(missing_ok=True)


@contextmanager
def _phase(name: str, root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"Memory cannot start ({name}): {root} {_reason(error)}.", hint=_hint(error)
        ) from error
    except pygit2.GitError as error:
        raise StorageError(f"Memory cannot start ({name}): {root}: {error}.", hint=_MEND) from error


def _reason(error: OSError) -> str:
    reasons = {
        errno.ENOSPC: "cannot be written, the disk is full",
        errno.EDQUOT: "cannot be written, the disk quota is used up",
        errno.EFBIG: "cannot be written, files may not grow so large",
        errno.EROFS: "cannot be written, the file system is read-only",
        errno.EACCES: "cannot be written, permission is denied",
        errno.EPERM: "cannot be written, permission is denied",
        errno.EEXIST: "is not a folder",
        errno.ENOTDIR: "is not a folder",
    }
    return reasons.get(error.errno or 0) or f"cannot be used ({error.strerror or error})"


def _hint(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space and start again; nothing was half-written."
    return "Make the folder writable for the user that runs Trunkline, or set runtime.memory_root to another one."
