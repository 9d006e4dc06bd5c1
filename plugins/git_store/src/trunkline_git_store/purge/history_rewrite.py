"""Rewrites commits as if something had never existed. Unchanged objects keep their bytes, and so their ids.

Objects are added and nothing is taken away here; the branches move last, so that a purge can be killed and begun again.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from types import MappingProxyType

import pygit2
from pygit2.enums import ObjectType

from trunkline.api.store import parents
from trunkline_git_store.commit_batch import parse_origin, trailers_only
from trunkline_git_store.purge.target import Target, TreeSelection
from trunkline_git_store.purge.version_index import commits, reference_targets
from trunkline_git_store.tree_diff import Nested, flatten

_SIGNATURE = re.compile(rb"^(?:gpgsig|gpgsig-sha256) [^\n]*\n(?: [^\n]*\n)*", re.MULTILINE)


class HistoryRewrite(ABC):
    """The rewriting of a repository's history. ``paths`` are the removed paths."""

    def __init__(self, git: pygit2.Repository) -> None:
        self._git = git
        self._new: dict[pygit2.Oid, pygit2.Oid] = {}
        self.paths: set[str] = set()
        self.rewritten = 0

    def run(self) -> dict[str, tuple[pygit2.Oid, pygit2.Oid]]:
        """Write what has to be written; returns the references that must move, with where from and where to."""
        for commit in commits(self._git):
            self._new[commit.id] = self._commit(commit)
        moves: dict[str, tuple[pygit2.Oid, pygit2.Oid]] = {}
        for name, old in reference_targets(self._git):
            new = self._rewritten_target(old)
            if new != old:
                moves[name] = (old, new)
        return moves

    # References ----------------------------------------------------------------------------------------------

    def _rewritten_target(self, old: pygit2.Oid) -> pygit2.Oid:
        """Return the new target of a reference: a commit, or a tag that names one."""
        found = self._git[old]
        if not isinstance(found, pygit2.Tag):
            return self._new.get(old, old)
        inner = found.get_object()
        new = self._rewritten_target(inner.id)
        if new == inner.id:
            return old
        data = found.read_raw().replace(str(inner.id).encode(), str(new).encode(), 1)
        return self._git.write(ObjectType.TAG, data)

    # Commits -------------------------------------------------------------------------------------------------

    def _commit(self, commit: pygit2.Commit) -> pygit2.Oid:
        tree, found = self._filter_tree(commit.tree_id)
        self.paths |= found
        parents = [self._new.get(parent, parent) for parent in commit.parent_ids]
        message = self._message(commit)
        if tree == commit.tree_id and parents == list(commit.parent_ids) and message is None:
            return commit.id
        self.rewritten += 1
        return self._git.write(ObjectType.COMMIT, self._encode_commit(commit, tree, parents, message))

    def _encode_commit(
        self,
        commit: pygit2.Commit,
        tree: pygit2.Oid | None,
        parents: list[pygit2.Oid],
        new_message: bytes | None,
    ) -> bytes:
        """The commit's own bytes with another tree, parents and message; a signature would not hold any more."""
        head, blank, message = commit.read_raw().partition(b"\n\n")
        message = message if new_message is None else new_message
        kept = tree if tree is not None else self._git.TreeBuilder().write()
        lines = [b"tree " + str(kept).encode(), *(b"parent " + str(parent).encode() for parent in parents)]
        rest = _SIGNATURE.sub(b"", head[head.index(b"\nauthor ") + 1 :] + b"\n").rstrip(b"\n")
        return b"\n".join((*lines, rest)) + blank + message

    @abstractmethod
    def _filter_tree(self, tree: pygit2.Oid) -> tuple[pygit2.Oid | None, frozenset[str]]:
        """A commit's folder without what is to be taken out (None when it is empty then), and the paths of that."""

    def _message(self, commit: pygit2.Commit) -> bytes | None:
        """Return the new message of a commit; None to keep the present one."""
        return None


class PurgeRewrite(HistoryRewrite):
    """Takes a target out, and makes ``edits``: what versions of paths become, by their blobs. Commits that were made in
    ``conversations`` lose their words."""

    def __init__(
        self,
        git: pygit2.Repository,
        target: Target,
        edits: Mapping[str, Mapping[pygit2.Oid, pygit2.Oid | None]] = MappingProxyType({}),
        conversations: Set[str] = frozenset(),
    ) -> None:
        super().__init__(git)
        self._target = target
        self._edits = edits
        self._ways = {above: frozenset[str]() for path in edits for above in ("", *parents(path))}
        for path in edits:
            *folders, name = path.split("/")
            for depth, folder in enumerate(folders):
                above = "/".join(folders[:depth])
                self._ways[above] |= {folder}
            above = "/".join(folders)
            self._ways[above] |= {name}
        self._conversations = conversations
        self._trees: dict[
            tuple[pygit2.Oid, Target | None, str | None], tuple[pygit2.Oid | None, frozenset[str]]
        ] = {}

    def _message(self, commit: pygit2.Commit) -> bytes | None:
        if not self._conversations or parse_origin(commit).conversation not in self._conversations:
            return None
        said = commit.read_raw().partition(b"\n\n")[2]
        kept = trailers_only(commit.message).encode()
        return None if kept == said else kept

    def _filter_tree(self, tree: pygit2.Oid) -> tuple[pygit2.Oid | None, frozenset[str]]:
        found = self._git[tree]
        assert isinstance(found, pygit2.Tree)
        return self._tree(found, self._target, "" if self._edits else None)

    def _tree(
        self, tree: pygit2.Tree, target: Target | None, at: str | None
    ) -> tuple[pygit2.Oid | None, frozenset[str]]:
        """A folder without the target and after the edits below ``at`` (None when it is empty then), and the paths that
        were taken out below it. Without a target or a place there is nothing to do of that kind."""
        key = (tree.id, target, at)
        if key not in self._trees:
            self._trees[key] = self._look(tree, target, at)
        return self._trees[key]

    def _look(
        self, tree: pygit2.Tree, target: Target | None, at: str | None
    ) -> tuple[pygit2.Oid | None, frozenset[str]]:
        folders = {str(item.name): item for item in tree if isinstance(item, pygit2.Tree)}
        look = TreeSelection(frozenset(), {}) if target is None else target.select(list(folders))
        changed = _TreeEdit(self._git, tree)
        for name in look.out & {str(item.name) for item in tree}:
            changed.remove(name)
        ways = frozenset[str]() if at is None else self._ways.get(at, frozenset())
        into = look.into or {}
        for name in sorted((into.keys() | ways) - changed.gone):
            below = name if not at else f"{at}/{name}"
            if name in folders:
                deeper = below if name in ways and below in self._ways else None
                new, found = self._tree(folders[name], into.get(name), deeper)
                changed.put(name, new, found)
            elif name in ways:
                self._edit(changed, tree, name, below)
        return changed.result()

    def _edit(self, changed: "_TreeEdit", tree: pygit2.Tree, name: str, path: str) -> None:
        """Make the edit of a file, if this version of it has one."""
        versions = self._edits.get(path, {})
        if name not in tree or tree[name].id not in versions:
            return
        new = versions[tree[name].id]
        if new is None:
            changed.remove(name)
        else:
            changed.put(name, new, frozenset())


class _TreeEdit:
    """A folder that is being changed, and the paths below it that were taken out."""

    def __init__(self, git: pygit2.Repository, tree: pygit2.Tree) -> None:
        self._git = git
        self._tree = tree
        self._builder: pygit2.TreeBuilder | None = None
        self._paths: set[str] = set()
        self.gone: set[str] = set()

    def remove(self, name: str) -> None:
        """Take an entry out, with all in it."""
        self._paths |= set(flatten(_files(self._tree[name], name)))
        self.gone.add(name)
        self._build().remove(name)

    def put(self, name: str, new: pygit2.Oid | None, paths: frozenset[str]) -> None:
        """Put another object in the place of an entry (None: a folder that is empty now)."""
        entry = self._tree[name]
        if new == entry.id:
            return
        self._paths |= {f"{name}/{path}" for path in paths}
        if new is None:
            self._build().remove(name)
        else:
            self._build().insert(name, new, entry.filemode)

    def result(self) -> tuple[pygit2.Oid | None, frozenset[str]]:
        """The folder, and what was taken out."""
        if self._builder is None:
            return self._tree.id, frozenset()
        return (self._builder.write() if len(self._builder) else None), frozenset(self._paths)

    def _build(self) -> pygit2.TreeBuilder:
        if self._builder is None:
            self._builder = self._git.TreeBuilder(self._tree)
        return self._builder


def _files(item: pygit2.Object, path: str) -> Nested[str]:
    """The files of an entry that is taken out."""
    if not isinstance(item, pygit2.Tree):
        yield path
        return
    for below in item:
        yield _files(below, f"{path}/{below.name}")
