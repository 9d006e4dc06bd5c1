"""Packing loose objects in the background, so that history stays small. Adds packs first, removes only what is in one.

Works beside the writer: objects never change, and each step leaves every object readable.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pygit2

from trunkline.memory.durable import Syncer
from trunkline.memory.repository import Repository

LOOSE_LIMIT = 4_000
PACK_LIMIT = 20
_SAMPLE = 8


class Packer:
    """Packs one repository."""

    def __init__(self, root: Path, syncer: Syncer) -> None:
        self._root = root
        self._objects = root / ".git" / "objects"
        self._packs = self._objects / "pack"
        self._scratch = root / ".git" / "trunkline" / "packing"
        self._syncer = syncer

    def due(self) -> bool:
        """Whether there are many loose objects, judged by a sample."""
        found = sum(1 for first in range(_SAMPLE) for _ in self._loose_in(f"{first * 32 + 7:02x}"))
        return found * (256 / _SAMPLE) > LOOSE_LIMIT

    def crowded(self) -> bool:
        """Whether there are many packs."""
        return len(self.packs()) > PACK_LIMIT

    def packs(self) -> list[Path]:
        """The packs that are not marked to be kept."""
        found = sorted(self._packs.glob("pack-*.pack"))
        return [pack for pack in found if not pack.with_suffix(".keep").exists()]

    def pack_loose(self) -> int:
        """Move loose objects into a pack; returns how many."""
        loose = [name for first in range(256) for name in self._loose_in(f"{first:02x}")]
        if loose:
            self._write(pygit2.Oid(hex=name) for name in loose)
            for name in loose:
                (self._objects / name[:2] / name[2:]).unlink(missing_ok=True)
        return len(loose)

    def join_packs(self) -> list[Path]:
        """Write one pack of everything; returns the older packs, which ``remove`` may take away."""
        older = self.packs()
        repository = Repository(self._root)
        try:
            written = self._write(list(repository.git.odb))
        finally:
            repository.close()
        return [pack for pack in older if pack.name not in written]

    def take_in(self, folder: Path, names: list[str]) -> None:
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

    def _write(self, oids: Iterator[pygit2.Oid] | list[pygit2.Oid]) -> set[str]:
        """Write a pack and put it in place, safely on disk; returns its file names."""
        names = write_pack(self._root, self._scratch, oids)
        self.take_in(self._scratch, names)
        return set(names)

    def _loose_in(self, first: str) -> Iterator[str]:
        folder = self._objects / first
        if folder.is_dir():
            for entry in os.scandir(folder):
                if len(entry.name) == 38:
                    yield first + entry.name


def write_pack(root: Path, folder: Path, oids: Iterator[pygit2.Oid] | list[pygit2.Oid]) -> list[str]:
    """Write a pack of these objects and its index into a folder; returns the file names."""
    folder.mkdir(parents=True, exist_ok=True)
    repository = Repository(root)
    try:
        builder = pygit2.PackBuilder(repository.git)
        builder.set_threads(1)
        for oid in oids:
            builder.add(oid)
        builder.write(str(folder))
    finally:
        repository.close()
    return [path.name for path in folder.glob("pack-*")]
