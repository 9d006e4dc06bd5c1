"""Git trees as rows of bytes, read and changed without parsing the whole tree each time.

What is written most is a folder with one row more than a moment ago. Through libgit2 that costs reading it, unpacking
it, sorting it and looking up each of its objects; here it costs one row.
"""

import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Mapping

import pygit2
from pygit2.enums import ObjectType

from trunkline_git_store.loose_objects import LooseObjectWriter

CACHED_ROWS = 20_000
"""The number of cached rows, of all folders together: some 150 bytes each."""

TREE_MODE = b"40000"
_ROW = re.compile(rb"(\d+) ([^\0]+)\0.{20}", re.DOTALL)

TreeValue = tuple[bytes, bytes]
"""The mode of what a row names, as git writes it, and its raw id."""


class RawTree:
    """A folder: its rows, sorted as git sorts them. A changed one is another."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: list[bytes], rows: list[bytes]) -> None:
        self._names = names
        self._rows = rows

    @classmethod
    def parse(cls, data: bytes) -> "RawTree":
        """The folder that git keeps as ``data``."""
        found = list(_ROW.finditer(data))
        return cls([_sort_key(row[2], row[1]) for row in found], [row[0] for row in found])

    def __len__(self) -> int:
        return len(self._rows)

    def __bytes__(self) -> bytes:
        return b"".join(self._rows)

    def names(self) -> Iterator[bytes]:
        """The names in it."""
        return (name.removesuffix(b"/") for name in self._names)

    def find(self, name: bytes) -> TreeValue | None:
        """Return the entry with a name, or None."""
        for sorted_by in (name, name + b"/"):
            at = bisect_left(self._names, sorted_by)
            if at < len(self._names) and self._names[at] == sorted_by:
                row = self._rows[at]
                return row[: row.index(b" ")], row[-20:]
        return None

    def with_changes(self, changes: Mapping[bytes, TreeValue | None]) -> "RawTree":
        """The folder that ``changes`` make of this one; a name with None is taken out."""
        new = RawTree(self._names.copy(), self._rows.copy())
        for name, held in changes.items():
            new._put(name, held)
        return new

    def _put(self, name: bytes, existing: TreeValue | None) -> None:
        for sorted_by in (name, name + b"/"):
            at = bisect_left(self._names, sorted_by)
            if at < len(self._names) and self._names[at] == sorted_by:
                del self._names[at], self._rows[at]
        if existing is not None:
            sorted_by = _sort_key(name, existing[0])
            at = bisect_left(self._names, sorted_by)
            self._names.insert(at, sorted_by)
            self._rows.insert(at, b"%b %b\0%b" % (existing[0], name, existing[1]))


class RawTreeStore:
    """The folders of a repository, and where new ones are stored. Those that were looked at or written last stay in
    mind."""

    def __init__(self, git: pygit2.Repository, store: LooseObjectWriter) -> None:
        self._git = git
        self._store = store
        self._trees: OrderedDict[bytes, RawTree] = OrderedDict()
        self._rows = 0

    def get(self, folder: bytes) -> RawTree:
        """A folder by its raw id. Raises KeyError when it is unknown."""
        known = self._trees.get(folder)
        if known is None:
            kind, data = self._git.read(pygit2.Oid(raw=folder))
            if kind != ObjectType.TREE:
                raise KeyError(folder.hex())
            return self._cache(folder, RawTree.parse(data))
        self._trees.move_to_end(folder)
        return known

    def write(self, folder: RawTree, instead_of: bytes | None) -> pygit2.Oid:
        """Store a folder. The one that it takes the place of is not kept in mind."""
        oid = self._store.write(b"tree", bytes(folder))
        if instead_of is not None:
            self._rows -= len(self._trees.pop(instead_of, ()))
        self._cache(oid.raw, folder)
        return oid

    def _cache(self, name: bytes, folder: RawTree) -> RawTree:
        self._rows += len(folder) - len(self._trees.pop(name, ()))
        self._trees[name] = folder
        while self._rows > CACHED_ROWS and len(self._trees) > 1:
            self._rows -= len(self._trees.popitem(last=False)[1])
        return folder


def _sort_key(name: bytes, mode: bytes) -> bytes:
    """A folder's name sorts as if it ended in a slash."""
    return name + b"/" if mode == TREE_MODE else name
