"""A history that came in an archive, looked through before any of it is ours. Reads; writes only its own folder.

The objects go into a repository made here, so nothing that the archive says of configuration, hooks, attributes or
other object stores is ever read. What git itself would not check out is refused, so the repository that takes it in
passes ``git fsck`` as before. Links and submodules stay in history, and never become files.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType, RepositoryOpenFlag

from trunkline.api.archive import MEMORY, InvalidArchive
from trunkline_git_store.packer import write_pack
from trunkline_git_store.repository import Repository
from trunkline_git_store.transfer.tree_rows import (
    FOLDER,
    MAX_BLOB_BYTES,
    MAX_TREE_BYTES,
    SUBMODULE,
    TreeRow,
    check_rows,
    parse_rows,
    row_problem,
)

PROGRESS_EVERY = 512

MAX_DEPTH = 2_048
"""The largest depth of folders in a history. No system can check out deeper ones: a path has at most 4096
bytes."""

_REFERENCE = re.compile(r"([0-9a-f]{40}) (refs/(?:heads|tags)/\S{1,200})")
_HEAD = re.compile(r"ref: (refs/heads/\S{1,200})\n?")
_PERSON = re.compile(rb"[^<>\n\0]*<[^<>\n\0]*> \d{1,12} [+-]\d{4}")


class IncomingHistory:
    """The history in an unpacked archive. ``head`` is its newest commit; ``fresh`` what this memory does not have."""

    def __init__(self, unpacked: Path, root: Path, report_progress: Callable[[int], None]) -> None:
        """Check all of it. ``report_progress`` is called with the number of objects seen. Raises InvalidArchive and
        OSError."""
        self._own = pygit2.Repository(str(root), RepositoryOpenFlag.NO_SEARCH)
        self._folder = unpacked / "arrived.git"
        try:
            heads = self._make(unpacked / MEMORY / ".git")
            self._search = _FreshObjects(pygit2.Repository(str(self._folder)), self._own, report_progress)
            self.fresh = self._search.reach(heads.values())
        except (pygit2.GitError, KeyError, ValueError) as error:
            raise InvalidArchive(f"its history is damaged ({_shown(error)})") from error
        finally:
            self._own.free()
        self.head = heads.pop("HEAD")
        self.references = {name: commit for name, commit in heads.items() if commit != self.head}
        both = self._folder / "objects" / "info" / "alternates"
        both.write_text(f"{(root / '.git' / 'objects').resolve()}\n")
        self.repository = Repository(self._folder)

    @property
    def commits(self) -> list[pygit2.Oid]:
        """The commits that this memory does not have."""
        return self._search.commits

    def pack(self, folder: Path) -> list[str]:
        """Write what is fresh into one pack, every object checked against its name; returns the names of the files.

        Raises InvalidArchive and OSError.
        """
        if not self.fresh:
            return []
        try:
            return write_pack(self._folder, folder, self.fresh)
        except (pygit2.GitError, KeyError) as error:
            raise InvalidArchive(f"its history is damaged ({_shown(error)})") from error

    def close(self) -> None:
        """Let go of file handles."""
        self.repository.close()

    def _make(self, git: Path) -> dict[str, pygit2.Oid]:
        """The repository, with the archive's objects in it; returns its heads by name."""
        pygit2.init_repository(str(self._folder), bare=True).free()
        for file in sorted((git / "objects").rglob("*")):
            target = self._folder / file.relative_to(git)
            if file.is_dir():
                target.mkdir(exist_ok=True)
            elif file.suffix != ".rev":
                file.rename(target)
        return _heads(git)


def _heads(git: Path) -> dict[str, pygit2.Oid]:
    """All branches and tags by name, and HEAD."""
    texts = [_text(git / "packed-refs")]
    for file in sorted((git / "refs").rglob("*")) if (git / "refs").is_dir() else ():
        if file.is_file():
            texts.append(f"{_text(file).strip()} {file.relative_to(git).as_posix()}")
    lines = (line for text in texts for line in text.splitlines())
    found = (line for text in lines if (line := _REFERENCE.fullmatch(text)))
    heads = {line[2]: pygit2.Oid(hex=line[1]) for line in found if pygit2.reference_is_valid_name(line[2])}
    branch = _HEAD.fullmatch(_text(git / "HEAD"))
    if branch is None or branch[1] not in heads:
        raise InvalidArchive("its history has no newest commit")
    return {**heads, "HEAD": heads[branch[1]]}


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


class _FreshObjects:
    """The commits that this memory does not have, with all their objects."""

    def __init__(
        self, arrived: pygit2.Repository, own: pygit2.Repository, report_progress: Callable[[int], None]
    ) -> None:
        self._odb = arrived.odb
        self._own = own.odb
        self._report_progress = report_progress
        self._visited: dict[pygit2.Oid, None] = {}
        self._heights: dict[pygit2.Oid, int] = {}
        self.commits: list[pygit2.Oid] = []

    def reach(self, heads: Iterable[pygit2.Oid]) -> list[pygit2.Oid]:
        """The fresh objects, none before it was looked at."""
        waiting = [self._commit_at(head) for head in heads]
        while waiting:
            commit = waiting.pop()
            if self._is_known(commit):
                continue
            self.commits.append(commit)
            tree, parents = _commit(self._read(commit, ObjectType.COMMIT, MAX_TREE_BYTES))
            waiting += parents
            self._folders(tree)
        return list(self._visited)

    def _commit_at(self, head: pygit2.Oid) -> pygit2.Oid:
        """The commit that a branch or tag leads to; tags with a text of their own are objects, which come along."""
        while self._odb.exists(head) and self._odb.read_header(head)[0] == ObjectType.TAG:
            tag = self._read(head, ObjectType.TAG, MAX_TREE_BYTES)
            self._is_known(head)
            head = _tagged(tag)
        return head

    def _folders(self, top: pygit2.Oid) -> None:
        """All below a folder; the deepest first, so that each knows how many folders are nested in it."""
        below: dict[pygit2.Oid, list[pygit2.Oid]] = {}
        waiting = [top]
        while waiting:
            tree = waiting[-1]
            if tree not in self._heights and tree not in below:
                below[tree] = self._subfolders(tree)
                waiting += [one for one in below[tree] if one not in self._heights]
                continue
            waiting.pop()
            if tree not in self._heights:
                height = 1 + max((self._heights[one] for one in below.pop(tree)), default=0)
                if height > MAX_DEPTH:
                    raise InvalidArchive(
                        f"its history has folders that are nested more than {MAX_DEPTH} deep"
                    )
                self._heights[tree] = height

    def _subfolders(self, tree: pygit2.Oid) -> list[pygit2.Oid]:
        """The folders in a folder. Of one that this memory has nothing is looked at but these."""
        if self._is_known(tree):
            return self._known_folders(tree)
        found = []
        for row in _checked_rows(self._read(tree, ObjectType.TREE, MAX_TREE_BYTES)):
            if row.mode == FOLDER:
                found.append(row.oid)
            elif row.mode != SUBMODULE and not self._is_known(row.oid):
                self._require(row.oid, ObjectType.BLOB, MAX_BLOB_BYTES)
        return found

    def _known_folders(self, tree: pygit2.Oid) -> list[pygit2.Oid]:
        try:
            return [row.oid for row in parse_rows(self._own.read(tree)[1]) if row.mode == FOLDER]
        except (KeyError, pygit2.GitError):
            return []  # this memory has lost it, which is no fault of the archive

    def _is_known(self, oid: pygit2.Oid) -> bool:
        """Report whether an object was seen, or is in this memory; else it is noted."""
        if oid in self._visited or self._own.exists(oid):
            return True
        self._visited[oid] = None
        if len(self._visited) % PROGRESS_EVERY == 0:
            self._report_progress(len(self._visited))
        return False

    def _read(self, oid: pygit2.Oid, kind: ObjectType, largest: int) -> bytes:
        self._require(oid, kind, largest)
        data: bytes = self._odb.read(oid)[1]
        return data

    def _require(self, oid: pygit2.Oid, kind: ObjectType, largest: int) -> None:
        found, size = self._odb.read_header(oid)
        if found != kind:
            raise ValueError(f"{oid} is something else")
        if size > largest:
            raise InvalidArchive(f"it holds a file of {size} bytes, which is too large")


def _commit(data: bytes) -> tuple[pygit2.Oid, list[pygit2.Oid]]:
    """A commit's tree and parents. Raises ValueError for what git would complain of."""
    head = data.partition(b"\n\n")[0]
    lines = head.split(b"\n")
    fields = [line.partition(b" ")[::2] for line in lines]
    names = [name for name, _ in fields]
    parents = names[1:].index(b"author") if b"author" in names[1:] else -1
    wanted = [b"tree", *[b"parent"] * max(0, parents), b"author", b"committer"]
    if parents < 0 or names[: len(wanted)] != wanted or b"\0" in head:
        raise ValueError("an invalid commit")
    if not all(_PERSON.fullmatch(text) for _, text in fields[1 + parents : 3 + parents]):
        raise ValueError("a commit without an author")
    ids = [pygit2.Oid(hex=text.decode("ascii")) for _, text in fields[: 1 + parents]]
    return ids[0], ids[1:]


def _tagged(data: bytes) -> pygit2.Oid:
    """Return the object that a tag names. Raises ValueError for a tag that git would reject."""
    lines = data.split(b"\n")
    names = [line.partition(b" ")[0] for line in lines[:3]]
    if names != [b"object", b"type", b"tag"]:
        raise ValueError("an invalid tag")
    return pygit2.Oid(hex=lines[0].partition(b" ")[2].decode("ascii"))


def _checked_rows(tree: bytes) -> Iterator[TreeRow]:
    """Yield the entries of a folder. Raises InvalidArchive and ValueError for an entry that is not
    permitted."""
    for row in check_rows(tree):
        fault = row_problem(row)
        if fault:
            raise InvalidArchive(f"its history holds {_shown(row.display_name)}, {fault}")
        yield row


def _shown(what: object) -> str:
    return repr(str(what)[:120])
