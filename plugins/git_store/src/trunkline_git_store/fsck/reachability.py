"""Checks that everything that history needs exists and can be read, as ``git fsck`` does, without git."""

from typing import NamedTuple

import pygit2

from trunkline_git_store.repository import Repository

_FOLDER = 0o040000
_SUBMODULE = 0o160000


class LostObject(NamedTuple):
    """An object that is needed and is not there: its id, the version that needs it, and where it belongs there."""

    id: pygit2.Oid
    version: str
    path: str


class ReachabilityReport(NamedTuple):
    """The result: the numbers of commits and objects that were checked, and the lost objects."""

    commits: int
    objects: int
    lost: list[LostObject]


def check_reachability(repository: Repository, head: pygit2.Oid | None) -> ReachabilityReport:
    """Check the objects that a commit reaches, back to the first commit."""
    return _HistoryWalk(repository.git).walk(head)


def tree_ids(repository: Repository, version: pygit2.Oid) -> list[pygit2.Oid]:
    """The ids of a version's folders, those that are lost among them; none below these is known."""
    try:
        waiting = [repository.commit(version).tree_id]
    except (KeyError, ValueError, pygit2.GitError):
        return []
    found = []
    while waiting:
        found.append(waiting.pop())
        try:
            tree = repository.git[found[-1]]
        except (KeyError, ValueError, pygit2.GitError):
            continue
        if isinstance(tree, pygit2.Tree):
            waiting += [entry.id for entry in tree if entry.filemode == _FOLDER]
    return found


class _HistoryWalk:
    def __init__(self, git: pygit2.Repository) -> None:
        self._git = git
        self._visited: set[bytes] = set()
        self._lost: list[LostObject] = []
        self._commits = 0

    def walk(self, head: pygit2.Oid | None) -> ReachabilityReport:
        """Commits first to last; each tree and blob once."""
        left = [] if head is None else [head]
        while left:
            oid = left.pop()
            if oid.raw in self._visited:
                continue
            self._visited.add(oid.raw)
            commit = self._read(oid, str(oid), "")
            if not isinstance(commit, pygit2.Commit):
                continue
            self._commits += 1
            left += commit.parent_ids
            self._tree(commit.tree_id, str(oid))
        return ReachabilityReport(self._commits, len(self._visited), self._lost)

    def _tree(self, top: pygit2.Oid, version: str) -> None:
        waiting = [(top, "")]
        while waiting:
            oid, path = waiting.pop()
            if oid.raw in self._visited:
                continue
            self._visited.add(oid.raw)
            tree = self._read(oid, version, path)
            for entry in tree if isinstance(tree, pygit2.Tree) else ():
                below = f"{path}/{entry.name}" if path else str(entry.name)
                if entry.filemode == _FOLDER:
                    waiting.append((entry.id, below))
                elif entry.filemode != _SUBMODULE and entry.id.raw not in self._visited:
                    self._visited.add(entry.id.raw)
                    self._read(entry.id, version, below)

    def _read(self, oid: pygit2.Oid, version: str, path: str) -> pygit2.Object | None:
        try:
            self._git.read(oid)  # checks the content against the name
            return self._git[oid]
        except (KeyError, ValueError, pygit2.GitError):
            self._lost.append(LostObject(oid, version, path))
            return None
