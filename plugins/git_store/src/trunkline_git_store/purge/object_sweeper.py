"""Away with every object that nothing leads to any more. What is kept goes into one new pack first.

A note in our own folder says that this is under way, so that a start after a crash finishes it.
"""

from collections.abc import Iterator
from pathlib import Path

import pygit2

from trunkline_git_store.fsync import Syncer
from trunkline_git_store.packer import Packer
from trunkline_git_store.repository import Repository
from trunkline_git_store.root_layout import RootLayout


class ObjectSweeper:
    """Sweeps one repository. Nobody else may write to it meanwhile."""

    def __init__(self, places: RootLayout, packer: Packer, syncer: Syncer) -> None:
        self._layout = places
        self._packer = packer
        self._syncer = syncer
        self._marker = places.state_folder / "purging"

    def write_marker(self) -> None:
        """Note that objects are to be swept, on disk."""
        self._marker.touch()
        self._syncer.sync([str(self._marker), str(self._layout.state_folder)])

    def is_unfinished(self) -> bool:
        """Report whether a sweep was announced and not finished."""
        return self._marker.exists()

    def sweep(self) -> None:
        """Keep what is led to, remove the rest, and what names it: logs of references, lists of commits."""
        older, loose = list(self._packs().glob("pack-*")), list(self._loose())
        repository = Repository(self._layout.root)
        try:
            kept = set(self._packer.write(list(_reachable_objects(repository.git))))
        finally:
            repository.close()
        for left in self._lists():
            left.unlink(missing_ok=True)
        for part in sorted(older):  # .idx before .pack
            if part.name not in kept:
                part.unlink(missing_ok=True)
        for file in loose:
            file.unlink(missing_ok=True)
        self._syncer.sync([str(self._packs())])
        self._marker.unlink(missing_ok=True)

    def _packs(self) -> Path:
        return self._layout.git / "objects" / "pack"

    def _loose(self) -> Iterator[Path]:
        return (self._layout.git / "objects").glob("[0-9a-f][0-9a-f]/*")

    def _lists(self) -> Iterator[Path]:
        """Yield the files of other programs that name former objects."""
        git = self._layout.git
        yield from (file for file in (git / "logs").rglob("*") if file.is_file())
        yield from (git / name for name in ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD"))
        yield from (git / "objects" / "info").glob("commit-graph*")
        yield from (git / "objects" / "info" / "commit-graphs").glob("*")
        yield from self._packs().glob("multi-pack-index*")


def _reachable_objects(git: pygit2.Repository) -> Iterator[pygit2.Oid]:
    """Every object that a reference or the list of staged files leads to."""
    seen: set[pygit2.Oid] = set()
    waiting = [item.target for item in git.references.objects if isinstance(item.target, pygit2.Oid)]
    waiting += [entry.id for entry in git.index if entry.id in git]
    while waiting:
        oid = waiting.pop()
        if oid in seen:
            continue
        seen.add(oid)
        yield oid
        waiting += _references(git, oid, seen)


def _references(git: pygit2.Repository, oid: pygit2.Oid, seen: set[pygit2.Oid]) -> list[pygit2.Oid]:
    found = git[oid]
    if isinstance(found, pygit2.Commit):
        # pygit2's types do not make a commit an object.
        parents = [*found.parent_ids]  # pyright: ignore[reportGeneralTypeIssues]
        return [found.tree_id, *(parent for parent in parents if parent not in seen)]
    if isinstance(found, pygit2.Tree):
        return [item.id for item in found if item.id not in seen and item.type_str != "commit"]
    return [found.target] if isinstance(found, pygit2.Tag) else []
