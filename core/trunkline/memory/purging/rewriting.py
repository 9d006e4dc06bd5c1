"""Writing commits anew as if something had never been. What does not change keeps its bytes, and so its id.

Objects are added and nothing is taken away here; the branches move last, so that a purge can be killed and begun again.
"""

import re
from collections.abc import Iterator

import pygit2
from pygit2.enums import ObjectType, SortMode

from trunkline.memory.purging.target import Target
from trunkline.memory.repository import Repository

_SIGNATURE = re.compile(rb"^(?:gpgsig|gpgsig-sha256) [^\n]*\n(?: [^\n]*\n)*", re.MULTILINE)


class Rewriting:
    """One purge of one repository. ``paths`` are those that were found and taken out."""

    def __init__(self, repository: Repository, target: Target) -> None:
        self._git = repository.git
        self._target = target
        self._trees: dict[tuple[pygit2.Oid, Target], tuple[pygit2.Oid | None, frozenset[str]]] = {}
        self._new: dict[pygit2.Oid, pygit2.Oid] = {}
        self.paths: set[str] = set()
        self.rewritten = 0

    def run(self) -> dict[str, tuple[pygit2.Oid, pygit2.Oid]]:
        """Write what has to be written; returns the references that must move, with where from and where to."""
        for commit in self._commits():
            self._new[commit.id] = self._commit(commit)
        moves: dict[str, tuple[pygit2.Oid, pygit2.Oid]] = {}
        for name, old in self._tips():
            new = self._tip(old)
            if new != old:
                moves[name] = (old, new)
        return moves

    # References ----------------------------------------------------------------------------------------------

    def _tips(self) -> Iterator[tuple[str, pygit2.Oid]]:
        for reference in self._git.references.objects:
            if isinstance(reference.target, pygit2.Oid):
                yield reference.name, reference.target

    def _tip(self, old: pygit2.Oid) -> pygit2.Oid:
        """Where a reference leads now: a commit, or a tag that names one."""
        found = self._git[old]
        if not isinstance(found, pygit2.Tag):
            return self._new.get(old, old)
        inner = found.get_object()
        new = self._tip(inner.id)
        if new == inner.id:
            return old
        data = found.read_raw().replace(str(inner.id).encode(), str(new).encode(), 1)
        return self._git.write(ObjectType.TAG, data)

    def _commits(self) -> Iterator[pygit2.Commit]:
        """Every commit that a reference leads to, parents first."""
        starts: list[pygit2.Oid] = []
        for _, tip in self._tips():
            found = self._git[tip]
            while isinstance(found, pygit2.Tag):
                found = found.get_object()
            if isinstance(found, pygit2.Commit):
                starts.append(found.id)
        if not starts:
            return
        walker = self._git.walk(starts[0], SortMode.TOPOLOGICAL | SortMode.REVERSE)
        for start in starts[1:]:
            walker.push(start)
        yield from walker

    # Commits -------------------------------------------------------------------------------------------------

    def _commit(self, commit: pygit2.Commit) -> pygit2.Oid:
        tree, found = self._tree(commit.tree, self._target)
        self.paths |= found
        parents = [self._new.get(parent, parent) for parent in commit.parent_ids]
        if tree == commit.tree.id and parents == list(commit.parent_ids):
            return commit.id
        self.rewritten += 1
        return self._git.write(ObjectType.COMMIT, self._anew(commit, tree, parents))

    def _anew(self, commit: pygit2.Commit, tree: pygit2.Oid | None, parents: list[pygit2.Oid]) -> bytes:
        """The commit's own bytes with another tree and parents; a signature would not hold any more."""
        head, blank, message = commit.read_raw().partition(b"\n\n")
        kept = tree if tree is not None else self._git.TreeBuilder().write()
        lines = [b"tree " + str(kept).encode(), *(b"parent " + str(parent).encode() for parent in parents)]
        rest = _SIGNATURE.sub(b"", head[head.index(b"\nauthor ") + 1 :] + b"\n").rstrip(b"\n")
        return b"\n".join((*lines, rest)) + blank + message

    # Trees ---------------------------------------------------------------------------------------------------

    def _tree(self, tree: pygit2.Tree, target: Target) -> tuple[pygit2.Oid | None, frozenset[str]]:
        """A folder without the target (None when it is empty then), and the paths that were taken out below it."""
        key = (tree.id, target)
        if key not in self._trees:
            self._trees[key] = self._look(tree, target)
        return self._trees[key]

    def _look(self, tree: pygit2.Tree, target: Target) -> tuple[pygit2.Oid | None, frozenset[str]]:
        folders = {str(item.name): item for item in tree if isinstance(item, pygit2.Tree)}
        look = target.look(list(folders))
        gone = frozenset(name for name in look.out if name in tree)
        paths: set[str] = {path for name in gone for path in _files(tree[name], name)}
        builder: pygit2.TreeBuilder | None = self._git.TreeBuilder(tree) if gone else None
        for name in gone:
            assert builder is not None
            builder.remove(name)
        for name, inner in (look.into or {}).items():
            if name in gone:
                continue
            new, found = self._tree(folders[name], inner)
            if new == folders[name].id:
                continue
            paths |= {f"{name}/{path}" for path in found}
            builder = builder or self._git.TreeBuilder(tree)
            if new is None:
                builder.remove(name)
            else:
                builder.insert(name, new, folders[name].filemode)
        if builder is None:
            return tree.id, frozenset()
        return (builder.write() if len(builder) else None), frozenset(paths)


def _files(item: pygit2.Object, path: str) -> Iterator[str]:
    """The files of an entry that is taken out."""
    if not isinstance(item, pygit2.Tree):
        yield path
        return
    for below in item:
        yield from _files(below, f"{path}/{below.name}")
