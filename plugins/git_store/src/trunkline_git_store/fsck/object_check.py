"""Checks the bytes of the objects that git stored.

libgit2 is not used: it never returns from reading a loose object whose compressed data ends too early (1.9).
"""

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

_KINDS = (b"blob", b"tree", b"commit", b"tag")


def broken_loose(objects: Path) -> Iterator[Path]:
    """The loose objects that do not hold what their names say."""
    for folder in objects.glob("[0-9a-f][0-9a-f]"):
        for file in folder.iterdir():
            if len(file.name) == 38 and not _whole(file, folder.name + file.name):
                yield file


def _whole(file: Path, name: str) -> bool:
    try:
        data = file.read_bytes()
    except FileNotFoundError:  # packed a moment ago
        return True
    except OSError:
        return False
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(data)
    except zlib.error:
        return False
    kind, _, size = data.partition(b"\0")[0].partition(b" ")
    if not inflater.eof or kind not in _KINDS or not size.isdigit():
        return False
    return len(data) == len(kind) + len(size) + 2 + int(size) and _sha1(data) == name


def broken_packs(objects: Path) -> Iterator[Path]:
    """The packs that do not end in the checksum of what they hold, or whose index does not."""
    for pack in sorted((objects / "pack").glob("pack-*.pack")):
        index = pack.with_suffix(".idx")
        if not _ends_well(pack) or (index.exists() and not _ends_well(index)):
            yield pack


def packs_without_index(objects: Path) -> list[Path]:
    """Packs that git does not see, since whoever wrote them was killed before the index."""
    return [pack for pack in (objects / "pack").glob("*.pack") if not pack.with_suffix(".idx").exists()]


def _ends_well(file: Path) -> bool:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return True
    return len(data) > 40 and hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:]


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
