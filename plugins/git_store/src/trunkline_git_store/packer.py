"""Packing loose objects in the background, so that history stays small. Adds packs first, removes only what is in one.

Works beside the writer: objects never change, and each step leaves every object readable.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pygit2
from pygit2.enums import SortMode
from pygit2.errors import check_error
from pygit2.ffi import C, ffi

from trunkline_git_store.fsync import Syncer
from trunkline_git_store.repository import Repository
from trunkline_git_store.tree_diff import TreeDiffer

LOOSE_LIMIT = 4_000
_SAMPLE = 8
_MAGIC = b"\377tOc\0\0\0\2"
_COUNT_AT = 8 + 255 * 4


class Packer:
    """Packs one repository."""

    def __init__(self, root: Path, syncer: Syncer) -> None:
        self._root = root
        self._objects = root / ".git" / "objects"
        self._packs = self._objects / "pack"
        self._scratch = root / ".git" / "trunkline" / "packing"
        self._syncer = syncer

    def is_due(self) -> bool:
        """Report whether there are many loose objects, judged by a sample."""
        found = sum(1 for first in range(_SAMPLE) for _ in self._loose_in(f"{first * 32 + 7:02x}"))
        return found * (256 / _SAMPLE) > LOOSE_LIMIT

    def small_packs(self) -> list[Path]:
        """The packs that should be one: the small ones, as far as the next larger is less than twice their sum.

        So there are few packs, however many writes there were, and an object is packed again only as often as the
        history doubles. Packs that are marked to be kept are left alone, and those without an index, which git does not
        see: a process was killed while it put one in place or took it away, and what they hold is elsewhere.
        """
        indexed = (index.with_suffix(".pack") for index in self._packs.glob("pack-*.idx"))
        found = [pack for pack in indexed if pack.exists() and not pack.with_suffix(".keep").exists()]
        sized = sorted((pack.stat().st_size, pack) for pack in found)
        total = together = 0
        for number, (size, _) in enumerate(sized):
            if number and size < 2 * total:
                together = number + 1
            total += size
        return [pack for _, pack in sized[:together]]

    def pack_loose(self) -> int:
        """Move loose objects into a pack; returns how many."""
        loose = [name for first in range(256) for name in self._loose_in(f"{first:02x}")]
        if loose:
            self.write(pygit2.Oid(hex=name) for name in loose)
            for name in loose:
                (self._objects / name[:2] / name[2:]).unlink(missing_ok=True)
        return len(loose)

    def merge(self, packs: list[Path]) -> list[Path]:
        """Write one pack of what is in some; returns those that ``remove`` may take away then."""
        written = self.write(oid for pack in packs for oid in pack_object_ids(pack))
        return [pack for pack in packs if pack.name not in written]

    def install(self, folder: Path, names: list[str]) -> None:
        """Put packs that lie in a folder in place, safely on disk."""
        self._syncer.sync(str(folder / name) for name in names)
        for name in sorted(names, reverse=True):  # the .pack before the .idx that makes git see it
            (folder / name).replace(self._packs / name)
        self._syncer.sync([str(self._packs)])

    def remove(self, packs: list[Path]) -> None:
        """Remove packs whose objects are in another one."""
        for pack in packs:
            for part in sorted(self._packs.glob(pack.stem + ".*")):  # .idx before .pack
                part.unlink(missing_ok=True)

    def write(self, oids: Iterable[pygit2.Oid]) -> set[str]:
        """Write a pack and put it in place, safely on disk; returns its file names."""
        names = write_pack(self._root, self._scratch, oids)
        self.install(self._scratch, names)
        return set(names)

    def _loose_in(self, first: str) -> Iterator[str]:
        folder = self._objects / first
        if folder.is_dir():
            for entry in os.scandir(folder):
                if len(entry.name) == 38:
                    yield first + entry.name


def pack_object_ids(pack: Path) -> list[pygit2.Oid]:
    """Return the ids of the objects in a pack, from its index (git's format, version 2).

    Raises:
        ValueError: the index has another format.
    """
    data = pack.with_suffix(".idx").read_bytes()
    count = int.from_bytes(data[_COUNT_AT : _COUNT_AT + 4], "big")
    end = _COUNT_AT + 4 + count * 20
    if data[:8] != _MAGIC or len(data) < end:
        raise ValueError(f"{pack.with_suffix('.idx')} is not a pack index")
    return [pygit2.Oid(raw=data[at : at + 20]) for at in range(_COUNT_AT + 4, end, 20)]


def write_pack(root: Path, folder: Path, oids: Iterable[pygit2.Oid]) -> list[str]:
    """Write a pack of these objects and its index into a folder; returns the file names."""
    folder.mkdir(parents=True, exist_ok=True)
    repository = Repository(root)
    try:
        builder = _NamedBuilder(repository.git)
        builder.set_threads(1)
        for oid, name in _named(repository, list(oids)):
            builder.add_named(oid, name)
        builder.write(str(folder))
    finally:
        repository.close()
    return [path.name for path in folder.glob("pack-*")]


class _NamedBuilder(pygit2.PackBuilder):
    """A pack builder that is given the path of each object, as git's own packer is: versions of the same file then lie
    side by side and are stored as deltas. Without it a history of small writes takes more than twice the space.

    pygit2's own ``add`` gives no path, so its door to libgit2 is used.
    """

    def add_named(self, oid: pygit2.Oid, name: bytes) -> None:
        """Add an object."""
        raw = ffi.new("git_oid *")
        ffi.buffer(raw)[:] = oid.raw
        check_error(C.git_packbuilder_insert(self._packbuilder, raw, name))


def _named(repository: Repository, oids: list[pygit2.Oid]) -> Iterator[tuple[pygit2.Oid, bytes]]:
    """The objects with the paths they had, the newest first, so that neighbours differ little.

    Paths are known as far as the commits that brought them are among the objects; the others come last, without one.
    """
    left, trees = dict.fromkeys(oids), TreeDiffer(repository.git)
    for commit in _commits(repository, set(oids)):
        before = commit.parents[0].tree_id if commit.parents else None
        for name, raw in trees.added_objects(before, commit.tree_id):
            oid = pygit2.Oid(raw=raw)
            if oid in left:
                del left[oid]
                yield oid, name
    for oid in left:
        yield oid, b""


def _commits(repository: Repository, commits: set[pygit2.Oid]) -> Iterator[pygit2.Commit]:
    """Return the wanted commits of the branch, newest first; stop when many others were passed since the last one."""
    head, passed, met = repository.head(), 0, False
    for commit in repository.git.walk(head, SortMode.NONE) if head is not None else ():
        if commit.id in commits:
            met, passed = True, 0
            yield commit
        else:
            passed += 1
            if met and passed > len(commits):
                return
