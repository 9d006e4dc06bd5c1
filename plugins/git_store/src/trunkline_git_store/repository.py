"""Git underneath: blobs, trees, commits and the branch. Knows nothing of the files that a person sees.

Objects are written without waiting for the disk; ``advance`` moves the branch, and is the moment a change becomes
history, so the caller syncs ``objects`` first. One thread at a time may use an instance; readers open their own.
"""

import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pygit2
from pygit2.enums import FileMode, ObjectType, RepositoryOpenFlag, SortMode

from trunkline import StorageError
from trunkline_git_store.loose_objects import LooseObjectWriter
from trunkline_git_store.raw_trees import TREE_MODE, RawTree, RawTreeStore, TreeValue
from trunkline_git_store.tree_diff import Nested, TreeDiffer, flatten

FILE_MODES = (FileMode.BLOB, FileMode.BLOB_EXECUTABLE)
EMPTY = RawTree([], [])


class BlobEntry(msgspec.Struct, frozen=True):
    """The content of a path: a blob, and whether it is executable."""

    blob: pygit2.Oid
    executable: bool = False

    @property
    def mode(self) -> FileMode:
        """The mode as git writes it."""
        return FileMode.BLOB_EXECUTABLE if self.executable else FileMode.BLOB

    @property
    def tree_value(self) -> TreeValue:
        """As a row of a folder names it."""
        return b"%o" % self.mode, self.blob.raw


class HeadMoved(Exception):
    """The branch has moved since the change was planned; plan it again."""


class HeadLocked(HeadMoved):
    """Another git process is about to move the branch: it holds the lock file that this names."""


class Repository:
    """The git repository of a memory root. With ``sync`` the branch is on disk when it has moved."""

    def __init__(self, root: Path, *, sync: bool = True) -> None:
        self._sync = sync
        self.folder = root / ".git"
        self._git = pygit2.Repository(str(root), RepositoryOpenFlag.NO_SEARCH)
        self._loose = LooseObjectWriter(f"{self.folder}/objects")
        self._folders = RawTreeStore(self._git, self._loose)
        self._written: dict[pygit2.Oid, None] = {}

    @property
    def git(self) -> pygit2.Repository:
        """pygit2's view of it."""
        return self._git

    def close(self) -> None:
        """Let go of file handles."""
        self._git.free()

    def reopen(self) -> bool:
        """Look afresh at which packs there are. False when it cannot be opened any more; then it stays as it is."""
        try:
            git = pygit2.Repository(str(self.folder.parent), RepositoryOpenFlag.NO_SEARCH)
        except pygit2.GitError:
            return False
        self._git.free()
        self._git = git
        self._folders = RawTreeStore(self._git, self._loose)
        return True

    # Reading -------------------------------------------------------------------------------------------------

    def branch(self) -> str:
        """The full name of the branch that is checked out."""
        target = self._git.lookup_reference("HEAD").target
        if not isinstance(target, str):
            raise StorageError("The memory's git repository is on no branch.", hint="Run: git switch main")
        return target

    def head(self) -> pygit2.Oid | None:
        """The newest commit; None before the first."""
        return None if self._git.head_is_unborn else self._commit_of(self.branch())

    def _commit_of(self, reference: str) -> pygit2.Oid:
        target = self._git.lookup_reference(reference).target
        assert isinstance(target, pygit2.Oid)
        return target

    def commit(self, oid: pygit2.Oid) -> pygit2.Commit:
        """A commit. Raises KeyError when it is unknown."""
        found = self._git[oid]
        if not isinstance(found, pygit2.Commit):
            raise KeyError(str(oid))
        return found

    def tree(self, commit: pygit2.Oid | None) -> pygit2.Tree | None:
        """A commit's tree; None for None."""
        return None if commit is None else self.commit(commit).tree

    def snapshot(self, commit: pygit2.Oid | None) -> "Snapshot":
        """A commit's files; none for None."""
        tree = None if commit is None else self.commit(commit).tree_id
        return Snapshot(self._git, self._folders, tree)

    def data(self, blob: pygit2.Oid) -> bytes:
        """A blob's bytes."""
        kind, data = self._git.read(blob)
        assert kind == ObjectType.BLOB
        return data

    @staticmethod
    def object_id(name: str) -> pygit2.Oid:
        """The id that a full hexadecimal name stands for."""
        return pygit2.Oid(hex=name)

    def version(self, text: str) -> pygit2.Commit | None:
        """The commit that a full or shortened id names."""
        try:
            found = self._git[text]
        except (KeyError, ValueError):
            return None
        return found if isinstance(found, pygit2.Commit) else None

    def includes(self, head: pygit2.Oid | None, version: str) -> bool:
        """Report whether a version is ``head`` or one before it."""
        found = self.version(version)
        if head is None or found is None:
            return False
        return found.id == head or self._git.descendant_of(head, found.id)

    # Writing -------------------------------------------------------------------------------------------------

    def write_blob(self, data: bytes) -> pygit2.Oid:
        """Store bytes."""
        return self._note_object(self._git.create_blob(data))

    def write_tree(self, base: pygit2.Oid | None, changes: Mapping[str, BlobEntry | None]) -> pygit2.Oid:
        """The tree that ``changes`` make of the tree ``base``; a path with None is taken out, and a folder left empty
        too."""
        split = {tuple(path.encode().split(b"/")): entry for path, entry in changes.items()}
        raw = None if base is None else base.raw
        return self._note_object(self._folders.write(self._changed(raw, split), raw))

    def write_commit(
        self,
        parent: pygit2.Oid | None,
        tree: pygit2.Oid,
        author: str,
        message: str,
        other: pygit2.Oid | None = None,
    ) -> pygit2.Oid:
        """Store a commit, with a second parent when ``other`` is one; no branch moves."""
        who = pygit2.Signature(author, f"{author.replace(' ', '-')}@localhost")
        parents = [one for one in (parent, other) if one is not None]
        return self._note_object(self._git.create_commit(None, who, who, message, tree, parents))

    def take_new_objects(self) -> list[str]:
        """The files of the objects written since this was last asked, for syncing them."""
        written, self._written = self._written, {}
        return [self._loose.path(str(oid)) for oid in written]

    def advance_branch(self, old: pygit2.Oid | None, new: pygit2.Oid) -> None:
        """Move the branch from ``old`` to ``new``; it is on disk when this returns (with ``sync``).

        Raises:
            HeadMoved: the branch is not at ``old`` any more.
            HeadLocked: somebody else is moving it right now.
            OSError: the disk refused.
        """
        name = self.branch()
        pygit2.settings.enable_fsync_gitdir(self._sync)
        try:
            if old is None:
                self._git.references.create(name, new)
                return
            reference = self._git.lookup_reference(name)
            if reference.target != old:
                raise HeadMoved
            reference.set_target(new)
        except (pygit2.GitError, OSError) as error:
            if "failed to lock" in str(error):
                raise HeadLocked(f"{self.folder}/{name}.lock") from error
            if self.head() == old:
                raise OSError(f"the branch could not be moved: {error}") from error
            raise HeadMoved from error
        finally:
            pygit2.settings.enable_fsync_gitdir(False)

    def move_references(self, moves: Mapping[str, tuple[pygit2.Oid, pygit2.Oid]]) -> None:
        """Move references from where they are to where they shall be, the branch that is checked out last.

        Raises:
            HeadMoved: one is not where it was any more.
        """
        pygit2.settings.enable_fsync_gitdir(self._sync)
        try:
            for name in sorted(moves, key=lambda name: (name == self.branch(), name)):
                old, new = moves[name]
                reference = self._git.lookup_reference(name)
                if reference.target != old:
                    raise HeadMoved
                reference.set_target(new)
        finally:
            pygit2.settings.enable_fsync_gitdir(False)

    def rollback_branch(self, new: pygit2.Oid, old: pygit2.Oid | None) -> None:
        """Undo an ``advance_branch`` whose files could not be written and that was not reported. Raises as
        ``advance_branch``."""
        if old is None:
            self._git.references.delete(self.branch())
        else:
            self.advance_branch(new, old)

    def refresh_git_index(self) -> None:
        """Let git's own index say what the last commit says, so that a person's ``git status`` tells the truth."""
        head = self.head()
        if head is not None:
            index = self._git.index
            index.read_tree(self.commit(head).tree)
            index.write()

    def _changed(self, base: bytes | None, changes: dict[tuple[bytes, ...], BlobEntry | None]) -> RawTree:
        """Return the tree of a folder after ``changes``; the folders below it are written."""
        folder = EMPTY if base is None else self._folders.get(base)
        here = {names[0]: entry for names, entry in changes.items() if len(names) == 1}
        below: dict[bytes, dict[tuple[bytes, ...], BlobEntry | None]] = {}
        for names, entry in changes.items():
            if len(names) > 1:
                below.setdefault(names[0], {})[names[1:]] = entry
        rows: dict[bytes, TreeValue | None] = dict.fromkeys(here)
        for name, inner in below.items():
            rows |= self._changed_below(folder, name, inner)
        rows |= {name: entry.tree_value for name, entry in here.items() if entry is not None}
        return folder.with_changes(rows)

    def _changed_below(
        self, folder: RawTree, name: bytes, changes: dict[tuple[bytes, ...], BlobEntry | None]
    ) -> dict[bytes, TreeValue | None]:
        there = folder.find(name)
        base = there[1] if there is not None and there[0] == TREE_MODE else None
        if base is None and all(entry is None for entry in changes.values()):
            return {}
        inner = self._changed(base, changes)
        return {
            name: (TREE_MODE, self._note_object(self._folders.write(inner, base)).raw) if len(inner) else None
        }

    def _note_object(self, oid: pygit2.Oid) -> pygit2.Oid:
        self._written[oid] = None
        return oid


class Snapshot:
    """The files of a tree."""

    def __init__(self, git: pygit2.Repository, folders: RawTreeStore, tree: pygit2.Oid | None) -> None:
        self._git = git
        self._all = folders
        self._folders = {"": tree.raw if tree is not None else None}

    def is_folder(self, path: str) -> bool:
        """Report whether a path is a folder's. "" is the tree itself, if there is one."""
        return self._folder(path) is not None

    def names(self, path: str) -> set[str]:
        """Return the names in a folder."""
        folder = self._folder(path)
        return (
            set()
            if folder is None
            else {name.decode("utf-8", "replace") for name in self._all.get(folder).names()}
        )

    def files(self, path: str) -> Iterator[tuple[str, BlobEntry]]:
        """All files below a folder, with their paths."""
        folder = self._folder(path)
        tree = None if folder is None else self._git[pygit2.Oid(raw=folder)]
        return files_in(tree if isinstance(tree, pygit2.Tree) else None, path)

    def entry(self, path: str) -> BlobEntry | None:
        """The file at a path; None when there is none."""
        found = self._find(path)
        mode = 0 if found is None else int(found[0], 8)
        if found is None or not stat.S_ISREG(mode):
            return None
        return BlobEntry(pygit2.Oid(raw=found[1]), bool(mode & stat.S_IXUSR))

    def _folder(self, path: str) -> bytes | None:
        """A folder's id, looked up from the last one above it that is known; a history may hold any depth."""
        unknown = []
        while path not in self._folders:
            unknown.append(path)
            path = path.rpartition("/")[0]
        found = self._folders[path]
        for below in reversed(unknown):
            row = None if found is None else self._row(found, below)
            found = self._folders[below] = row[1] if row is not None and row[0] == TREE_MODE else None
        return found

    def _find(self, path: str) -> TreeValue | None:
        folder = self._folder(path.rpartition("/")[0])
        return None if folder is None else self._row(folder, path)

    def _row(self, folder: bytes, path: str) -> TreeValue | None:
        return self._all.get(folder).find(path.rpartition("/")[2].encode("utf-8", "replace"))


def error_text(error: Exception) -> str:
    """Return the text of an error of git for people: the error of a lost object is only its id."""
    text = str(error).strip("'\"")
    alone = len(text) == 40 and not text.strip("0123456789abcdef")
    return f"the object {text} is lost" if alone else text[:200]


def entry_at(tree: pygit2.Tree | None, path: str) -> BlobEntry | None:
    """The file at a path of a tree; None when there is none."""
    found = _object_at(tree, path)
    if found is None or found.filemode not in FILE_MODES:
        return None
    return BlobEntry(found.id, found.filemode == FileMode.BLOB_EXECUTABLE)


def tree_at(tree: pygit2.Tree | None, path: str) -> pygit2.Tree | None:
    """The folder at a path of a tree; None when there is none. "" is the tree itself."""
    if not path:
        return tree
    found = _object_at(tree, path)
    return found if isinstance(found, pygit2.Tree) else None


def id_at(tree: pygit2.Tree | None, path: str) -> pygit2.Oid | None:
    """Return the id of the state of a file or folder; None when nothing is there."""
    if not path:
        return None if tree is None else tree.id
    found = _object_at(tree, path)
    return None if found is None else found.id


def files_in(tree: pygit2.Tree | None, prefix: str = "") -> Iterator[tuple[str, BlobEntry]]:
    """All files of a tree with their paths, ``prefix`` put before them; links and submodules are left out."""
    return flatten(_files_in(tree, prefix))


def _files_in(tree: pygit2.Tree | None, prefix: str) -> Nested[tuple[str, BlobEntry]]:
    for item in tree or ():
        path = f"{prefix}/{item.name}" if prefix else str(item.name)
        if isinstance(item, pygit2.Tree):
            yield _files_in(item, path)
        elif item.filemode in FILE_MODES:
            yield path, BlobEntry(item.id, item.filemode == FileMode.BLOB_EXECUTABLE)


def changed_files(
    git: pygit2.Repository, old: pygit2.Oid | None, new: pygit2.Oid
) -> Iterator[tuple[str, BlobEntry | None]]:
    """The paths that hold another file in the tree ``new`` than in ``old``; None for those that are gone."""
    for path, file in TreeDiffer(git).changed_files(old, new):
        yield path, None if file is None else BlobEntry(pygit2.Oid(raw=file.blob), file.executable)


def commit_time(commit: pygit2.Commit) -> datetime:
    """Return the time of a commit, in UTC."""
    return datetime.fromtimestamp(commit.commit_time, UTC)


def walk_commits(repository: Repository, start: pygit2.Oid) -> Iterator[pygit2.Commit]:
    """A commit and those before it, newest first."""
    return iter(repository.git.walk(start, SortMode.TOPOLOGICAL))


def _object_at(tree: pygit2.Tree | None, path: str) -> pygit2.Object | None:
    if tree is None:
        return None
    try:
        return tree[path]
    except KeyError:
        return None
