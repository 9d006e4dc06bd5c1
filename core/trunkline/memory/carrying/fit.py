"""What may be in a history that one memory hands to another: plain files and folders, by names that git does not use.

A person can commit anything with git, in a memory of their own too. An import refuses what is not fit, so an export
looks for it first: an archive that no memory takes in would be no backup.
"""

import re
from collections.abc import Iterable, Iterator

import pygit2
from pygit2.enums import SortMode

from trunkline.memory.paths import is_gits

FOLDER, FILES = b"40000", (b"100644", b"100755")
HARMLESS = frozenset({b".gitignore", b".gitattributes", b".gitkeep"})
"""What a person may have committed with git; as files of memory they are left out."""

_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{20})", re.DOTALL)


def entries(tree: bytes) -> Iterator[tuple[bytes, bytes, pygit2.Oid]]:
    """Mode, name and id of what is in a folder. Raises ValueError when it is none, or out of order."""
    place, before, names = 0, b"", set[bytes]()
    for found in _ENTRY.finditer(tree):
        mode, name, oid = found.groups()
        ordered = name + b"/" if mode == FOLDER else name
        if found.start() != place:
            raise ValueError("a folder that is none")
        if ordered <= before or name in names:
            raise ValueError("a folder out of order")
        names.add(name)
        place, before = found.end(), ordered
        yield mode, name, pygit2.Oid(raw=oid)
    if place != len(tree):
        raise ValueError("a folder that is none")


def unfit(mode: bytes, name: bytes) -> str:
    """What keeps an entry out of a memory; "" when nothing does."""
    if mode not in (FOLDER, *FILES):
        return "which is no plain file"
    leads_elsewhere = b"\\" in name or not name.strip(b" .")
    if leads_elsewhere or (name not in HARMLESS and is_gits(name.decode("utf-8", "replace"))):
        return "which is no name of a file of memory"
    return ""


def unfit_in(git: pygit2.Repository, tips: Iterable[pygit2.Oid]) -> Iterator[str]:
    """The paths in all of history that no other memory would take in."""
    seen, fit = set[pygit2.Oid](), set[tuple[bytes, bytes]]()
    for commit in _commits(git, tips):
        waiting = [(commit.tree_id, "")]
        while waiting:
            tree, place = waiting.pop()
            if tree in seen:
                continue
            seen.add(tree)
            for mode, name, oid in entries(git.odb.read(tree)[1]):
                if (mode, name) not in fit and unfit(mode, name):
                    yield f"{place}{name.decode('utf-8', 'replace')}"
                    continue
                fit.add((mode, name))
                if mode == FOLDER and oid not in seen:
                    waiting.append((oid, f"{place}{name.decode('utf-8', 'replace')}/"))


def _commits(git: pygit2.Repository, tips: Iterable[pygit2.Oid]) -> Iterator[pygit2.Commit]:
    starts = [git[tip].peel(pygit2.Commit).id for tip in tips]
    walker = git.walk(starts[0], SortMode.NONE)
    for start in starts[1:]:
        walker.push(start)
    return iter(walker)
