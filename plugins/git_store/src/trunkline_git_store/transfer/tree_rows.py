"""The rows that a transferred history may contain.

A person can commit anything with git, also in a memory. Entries that git itself checks out are transferred
unchanged: links, submodules and names such as ``.gitmodules`` stay in history, and no memory writes them as
files. Entries that git would not check out, lost objects and too large ones are left out of an export, by
name: a history that no other memory accepts would be no backup.
"""

import re
from collections.abc import Iterator
from operator import lt
from typing import NamedTuple

import pygit2

from trunkline.api.store import is_git_folder

FOLDER, FILES = b"40000", (b"100644", b"100755", b"100664")
LINK, SUBMODULE = b"120000", b"160000"
SPECIAL_MODES = {LINK: "a link", SUBMODULE: "a submodule"}
"""Entries that may be in history although they never become files of memory."""

MAX_BLOB_BYTES = 512 * 1024 * 1024
"""Bytes of the largest file, and LARGEST_LIST of the largest commit or folder, that a history may hold."""

MAX_TREE_BYTES = 64 * 1024 * 1024

_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{20})", re.DOTALL)


class TreeRow(NamedTuple):
    """An entry of a git folder."""

    mode: bytes
    name: bytes
    oid: pygit2.Oid

    @property
    def sort_key(self) -> bytes:
        """By what git sorts: a folder's name as if it ended in a slash."""
        return self.name + b"/" if self.mode == FOLDER else self.name

    @property
    def display_name(self) -> str:
        """The name, as text."""
        return self.name.decode("utf-8", "replace")


def parse_rows(tree: bytes) -> Iterator[TreeRow]:
    """Yield the entries of a folder, as far as it can be read."""
    for mode, name, raw in parse_raw_rows(tree):
        yield TreeRow(mode, name, pygit2.Oid(raw=raw))


def parse_raw_rows(tree: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The same at the least cost: mode, name and raw id."""
    return _ENTRY.findall(tree)


def is_sorted(rows: list[tuple[bytes, bytes, bytes]]) -> bool:
    """Report whether no row is there twice, or before one that git sorts before it."""
    orders = [name + b"/" if mode == FOLDER else name for mode, name, _ in rows]
    return all(map(lt, orders, orders[1:])) and len({name for _, name, _ in rows}) == len(rows)


def check_rows(tree: bytes) -> Iterator[TreeRow]:
    """Yield the entries of a folder. Raises ValueError when it is not one, or out of order."""
    place, before, names = 0, b"", set[bytes]()
    for row in parse_rows(tree):
        if row.sort_key <= before or row.name in names:
            raise ValueError("a folder out of order")
        names.add(row.name)
        place, before = place + len(row.mode) + len(row.name) + 22, row.sort_key
        yield row
    if place != len(tree):
        raise ValueError("an invalid folder")


def row_problem(row: TreeRow) -> str:
    """Return why an entry may not be in a history; "" when it may."""
    if row.mode not in (FOLDER, *FILES, *SPECIAL_MODES):
        return "which has a mode that git does not know"
    if row.name in (b".", b"..") or b"\\" in row.name or is_git_folder(row.display_name):
        return "which is not a valid name of a memory file"
    if row.mode == LINK and row.name.lower().startswith(b".git"):
        return "which is a link in place of a file of git's"
    return ""
