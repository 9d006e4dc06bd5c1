"""Reading what can still be read of a broken pack, object by object, by git's pack format (version 2). No libgit2.

Each object is checked against its name, so what comes out is what went in.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_BY_OFFSET, _BY_NAME = 6, 7
_FANOUT = 8 + 255 * 4


class GitObject(NamedTuple):
    """An object's kind and bytes."""

    kind: str
    data: bytes


def salvage(pack: Path) -> Iterator[GitObject]:
    """The objects that are whole, as far as the pack's index can be read."""
    reader = _PackReader(pack.read_bytes(), _offsets(pack.with_suffix(".idx").read_bytes()))
    for name, offset in reader.offsets.items():
        try:
            found = reader.at(offset)
        except (ValueError, IndexError, KeyError, zlib.error, RecursionError):
            continue  # this object is lost, or one that it is made of; the others may be whole
        if hashlib.sha1(b"%s %d\0" % (found.kind.encode(), len(found.data)) + found.data).digest() == name:
            yield found


def _offsets(index: bytes) -> dict[bytes, int]:
    """Each object's name and where it begins; {} for an index that is broken itself."""
    try:
        (count,) = struct.unpack_from(">I", index, _FANOUT)
        names = _FANOUT + 4
        places = names + count * 24
        large = places + count * 4
        found = {}
        for number in range(count):
            (offset,) = struct.unpack_from(">I", index, places + number * 4)
            if offset & 0x80000000:
                (offset,) = struct.unpack_from(">Q", index, large + (offset & 0x7FFFFFFF) * 8)
            found[index[names + number * 20 : names + number * 20 + 20]] = offset
        return found
    except struct.error:
        return {}


class _PackReader:
    def __init__(self, data: bytes, offsets: dict[bytes, int]) -> None:
        self.offsets = offsets
        self._data = data
        self._objects_by_offset: dict[int, GitObject] = {}

    def at(self, offset: int) -> GitObject:
        """The object that begins at an offset, its bases applied."""
        if offset not in self._objects_by_offset:
            self._objects_by_offset[offset] = self._read(offset)
        return self._objects_by_offset[offset]

    def _read(self, offset: int) -> GitObject:
        at = offset
        byte = self._data[at]
        kind, size, shift = byte >> 4 & 7, byte & 15, 4
        while byte & 0x80:
            at += 1
            byte = self._data[at]
            size |= (byte & 0x7F) << shift
            shift += 7
        at += 1
        if kind == _BY_OFFSET:
            back, at = self._back(at)
            base: int | None = offset - back
        elif kind == _BY_NAME:
            base, at = self.offsets[self._data[at : at + 20]], at + 20
        else:
            base = None
        data = self._inflated(at, size)
        if base is None:
            return GitObject(KINDS[kind], data)
        below = self.at(base)
        return GitObject(below.kind, apply_delta(below.data, data))

    def _back(self, at: int) -> tuple[int, int]:
        byte = self._data[at]
        back = byte & 0x7F
        while byte & 0x80:
            at += 1
            byte = self._data[at]
            back = (back + 1) << 7 | byte & 0x7F
        return back, at + 1

    def _inflated(self, at: int, size: int) -> bytes:
        inflater = zlib.decompressobj()
        data = inflater.decompress(self._data[at : at + size + 1024], size + 1)
        if len(data) != size or not (inflater.eof or inflater.unconsumed_tail == b""):
            raise ValueError("the object is truncated")
        return data


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """Return the result of applying git's delta to a base.

    Raises:
        ValueError, IndexError: the delta does not belong to this base.
    """
    at, sizes = 0, list[int]()
    for _ in range(2):
        size = shift = 0
        while True:
            byte = delta[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        sizes.append(size)
    result = bytearray()
    while at < len(delta):
        order = delta[at]
        at += 1
        if not order & 0x80:
            result += delta[at : at + order]
            at += order
            continue
        numbers = [0, 0]
        for bit in range(7):
            if order & 1 << bit:
                number, shift = (0, 8 * bit) if bit < 4 else (1, 8 * (bit - 4))
                numbers[number] |= delta[at] << shift
                at += 1
        start, length = numbers[0], numbers[1] or 0x10000
        result += base[start : start + length]
    if sizes != [len(base), len(result)]:
        raise ValueError("the delta is broken")
    return bytes(result)
