"""Making lost objects again. An object's name says what it holds, so one that is made of the same bytes is the same.

The files that a person sees are the blobs and folders of the last commit, unless somebody edited them; git's own index
knows the folders; and what can still be read of a pack that was put aside is as good as before.
"""

import contextlib
import stat
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from trunkline.api.bus import Refusal
from trunkline_git_store.fsck.salvage import salvage
from trunkline_git_store.repository import BlobEntry, Repository
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.worktree import Worktree

_KINDS = {
    "commit": ObjectType.COMMIT,
    "tree": ObjectType.TREE,
    "blob": ObjectType.BLOB,
    "tag": ObjectType.TAG,
}


def restore_objects(layout: RootLayout, worktree: Worktree, aside: Path | None = None) -> None:
    """Write again whatever can be known from packs put aside, from the files and from git's index."""
    repository = Repository(layout.root)
    try:
        if aside is not None:
            _from_packs(repository, aside)
        _from_files(repository, worktree)
        _from_index(repository)
    finally:
        repository.close()


def _from_files(repository: Repository, worktree: Worktree) -> None:
    repository.write_tree(None, store_files(repository, worktree))


def store_files(repository: Repository, worktree: Worktree) -> dict[str, BlobEntry | None]:
    """All files as they are now, stored."""
    entries: dict[str, BlobEntry | None] = {}
    for path, status in worktree.files():
        try:
            data, _ = worktree.read(path)
        except (Refusal, OSError):
            continue  # what cannot be read lends nothing; the examination has named it
        if not repository.git.path_is_ignored(path):
            entries[path] = BlobEntry(repository.write_blob(data), bool(status.st_mode & stat.S_IXUSR))
    return entries


def _from_index(repository: Repository) -> None:
    with contextlib.suppress(pygit2.GitError, OSError, KeyError):  # it may be what is broken
        repository.git.index.write_tree()


def _from_packs(repository: Repository, aside: Path) -> None:
    """Write the readable objects of packs that were moved aside into the repository."""
    for pack in (aside / "pack").glob("*.pack"):
        with contextlib.suppress(OSError):  # the disk gives no more of this pack
            for found in salvage(pack):
                repository.git.write(_KINDS[found.kind], found.data)
