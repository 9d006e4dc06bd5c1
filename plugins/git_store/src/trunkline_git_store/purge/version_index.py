"""All that history ever held: which path had which content, what became what, and in which conversation it was written.

One pass over all commits. A name is followed to another when a commit takes out a file and puts in one that holds
half of its lines, or vice versa; and when that comes a few commits later, as where a person moves a file by hand.
"""

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

import pygit2
from pygit2.enums import SortMode

from trunkline.api.store import is_similar, parse_conversation_path, significant_lines
from trunkline_git_store.commit_batch import parse_origin
from trunkline_git_store.tree_diff import TreeDiffer

Version = tuple[str, bytes]
"""A path, and the raw id of what it held."""

RENAME_WINDOW = 64
"""Commits after which what was taken out is not looked for under another name any more."""

MAX_COMPARED_PAIRS = 10_000
"""Pairs of files, one gone and one new, that are compared at each commit by more than their ids."""

MAX_COMPARED_BYTES = 4 * 1024 * 1024
"""Bytes of a file beyond which it is compared as a whole only."""


def reference_targets(git: pygit2.Repository) -> Iterator[tuple[str, pygit2.Oid]]:
    """Every reference, and what it leads to."""
    for reference in git.references.objects:
        if isinstance(reference.target, pygit2.Oid) and reference.target in git:
            yield reference.name, reference.target


def commits(git: pygit2.Repository) -> Iterator[pygit2.Commit]:
    """Every commit that a reference leads to, parents first."""
    starts: list[pygit2.Oid] = []
    for _, tip in reference_targets(git):
        found = git[tip]
        while isinstance(found, pygit2.Tag):
            found = found.get_object()
        if isinstance(found, pygit2.Commit):
            starts.append(found.id)
    if not starts:
        return
    walker = git.walk(starts[0], SortMode.TOPOLOGICAL | SortMode.REVERSE)
    for start in starts[1:]:
        walker.push(start)
    yield from walker


class VersionIndex:
    """All versions of all paths. ``head`` is the commit whose files exist now."""

    def __init__(self, git: pygit2.Repository, head: pygit2.Oid) -> None:
        self._git = git
        self._trees = TreeDiffer(git)
        self._gone: deque[tuple[int, Version]] = deque()
        self._next: dict[Version, set[Version]] = {}
        self._grown: set[Version] = set()
        self.lines = lru_cache(maxsize=256)(self._lines)
        self.held: dict[str, set[bytes]] = {}
        """All former content of each path."""
        self.written: dict[str, set[str]] = {}
        """The paths that were changed in each conversation."""
        self.turns: dict[str, set[str]] = {}
        """The turns of each conversation that changed something."""
        for number, commit in enumerate(commits(git)):
            self._take(number, commit)
        there = self._changed(None, self._tree(head))
        self.there: dict[str, bytes] = {path: new for path, _, new in there if new is not None}
        """The present content of paths."""

    def data(self, blob: bytes) -> bytes:
        """Return the content of a version."""
        return self._git.read(pygit2.Oid(raw=blob))[1]

    def versions(self) -> Iterator[Version]:
        """Every version of every path."""
        for path, blobs in self.held.items():
            yield from ((path, blob) for blob in blobs)

    def related_versions(self, version: Version) -> frozenset[Version]:
        """Return the versions before and after this one, under this name or another."""
        return frozenset(self._next.get(version, ()))

    def final_versions(self, path: str) -> frozenset[bytes]:
        """The versions of a path that did not go on under it."""
        return frozenset(
            blob
            for blob in self.held[path]
            if (path, blob) not in self._grown or self.there.get(path) == blob
        )

    def current_versions(self, path: str) -> frozenset[Version]:
        """The versions of the file that is at a path now; those of an earlier one of that name are not among them."""
        blob = self.there.get(path)
        found = set() if blob is None else {(path, blob)}
        waiting = list(found)
        while waiting:
            more = {one for one in self.related_versions(waiting.pop()) if one[0] == path} - found
            found |= more
            waiting += more
        return frozenset(found)

    # Reading commits -----------------------------------------------------------------------------------------

    def _take(self, number: int, commit: pygit2.Commit) -> None:
        parent = commit.parents[0].tree_id if commit.parents else None
        changes = list(self._changed(parent, commit.tree_id))
        for path, old, new in changes:
            if new is not None:
                self.held.setdefault(path, set()).add(new)
            if old is not None and new is not None:
                self._link((path, old), (path, new))
                self._grown.add((path, old))
        self._note(commit, [path for path, _, _ in changes])
        if len(commit.parents) < 2:
            self._follow(number, changes)

    def _note(self, commit: pygit2.Commit, paths: list[str]) -> None:
        origin = parse_origin(commit)
        if origin.conversation:
            self.written.setdefault(origin.conversation, set()).update(paths)
            if origin.turn:
                self.turns.setdefault(origin.conversation, set()).add(origin.turn)

    def _follow(self, number: int, changes: list[tuple[str, bytes | None, bytes | None]]) -> None:
        """Find under which other names files went on that were taken out."""
        self._gone.extend(
            (number, (path, old)) for path, old, new in changes if old is not None and new is None
        )
        while self._gone and self._gone[0][0] < number - RENAME_WINDOW:
            self._gone.popleft()
        come = (
            [(path, new) for path, old, new in changes if old is None and new is not None]
            if self._gone
            else []
        )
        closely = len(come) * len(self._gone) <= MAX_COMPARED_PAIRS
        for version in come:
            for _, gone in self._gone:
                if self._is_rename(gone, version, closely):
                    self._link(gone, version)

    def _is_rename(self, gone: Version, come: Version, closely: bool) -> bool:
        """Report whether a file that was taken out goes on under another name. Two conversations are never one,
        however much of what agents always say is in both; what was said in one is another file only when that is all
        of it.
        """
        before, after = parse_conversation_path(gone[0]), parse_conversation_path(come[0])
        if before is not None and after is not None:
            return before[1] == after[1]
        if gone[1] == come[1]:
            return True
        return (
            before is None
            and after is None
            and closely
            and is_similar(self.lines(gone[1]), self.lines(come[1]))
        )

    def _link(self, old: Version, new: Version) -> None:
        self._next.setdefault(old, set()).add(new)
        self._next.setdefault(new, set()).add(old)

    def _changed(
        self, old: pygit2.Oid | None, new: pygit2.Oid
    ) -> Iterator[tuple[str, bytes | None, bytes | None]]:
        """The paths that differ, with what they held and hold."""
        after = dict(self._trees.changed_files(old, new))
        before = dict(self._trees.changed_files(new, old))
        for path, file in after.items():
            was = before.get(path)
            yield path, None if was is None else was.blob, None if file is None else file.blob

    def _tree(self, commit: pygit2.Oid) -> pygit2.Oid:
        found = self._git[commit]
        assert isinstance(found, pygit2.Commit)
        return found.tree_id

    def _lines(self, blob: bytes) -> frozenset[bytes]:
        data = self.data(blob)
        return significant_lines(data) if len(data) <= MAX_COMPARED_BYTES else frozenset()
