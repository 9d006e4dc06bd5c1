"""The write operations, and their meaning for the files. Pure planning: no disk, no commit.

An operation is planned inside the single writer, against the state at that moment, so its conditions cannot
be overtaken. Planning may happen more than once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import pygit2

from trunkline.api.bus import Refusal, Scope
from trunkline.api.store import NOWHERE, encode_text, file_not_found, is_under, normalize_path, path_refusal
from trunkline_git_store.repository import BlobEntry
from trunkline_git_store.view import View

Content = bytes | BlobEntry | None
"""New bytes, a blob that exists already, or None: no file."""

Entries = dict[str, BlobEntry | None]
"""The content of paths after an operation is committed."""


@dataclass(frozen=True, slots=True)
class FileAppend:
    """A file that only gets longer: it held ``base`` of ``size`` bytes, and ``tail`` is added."""

    base: BlobEntry
    size: int
    tail: bytes


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The meaning of an operation for the files. ``reason`` is used when the caller gave none; ``done`` is
    called after the commit.

    ``merged_commit`` is a commit of another history that the new commit merges. ``rules_applied``: the memory rules
    have seen the files.
    """

    files: dict[str, Content]
    reason: str = ""
    growth: dict[str, FileAppend] = field(default_factory=dict)
    count: int = 0
    done: Callable[[Entries], None] = lambda entries: None
    merged_commit: pygit2.Oid | None = None
    rules_applied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOperation(ABC):
    """A requested change. ``affected_paths`` are the paths that it concerns; a folder stands for everything in it."""

    actor: str
    reason: str = ""
    scope: Scope = NOWHERE

    @property
    @abstractmethod
    def affected_paths(self) -> tuple[str, ...]: ...

    @abstractmethod
    def plan(self, view: View) -> ChangePlan:
        """Return the change plan. Raises Refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFiles(WriteOperation):
    """Write whole files, or take them out with None.

    ``expected`` maps a path to the blob id it must have now; "" means that it must be absent.
    """

    files: dict[str, bytes | None]
    expected: dict[str, str | None] = field(default_factory=dict)

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The paths."""
        return tuple(self.files.keys() | self.expected.keys())

    def plan(self, view: View) -> ChangePlan:
        """All files or none."""
        for path, wanted in self.expected.items():
            _require_hash(view, path, wanted)
        for path, content in self.files.items():
            if content is not None:
                require_free_path(view, path)
        names = sorted(self.files)
        verb = "Delete" if all(content is None for content in self.files.values()) else "Write"
        what = names[0] if len(names) == 1 else f"{len(names)} files"
        return ChangePlan(dict(self.files), f"{verb} {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFile(WriteOperation):
    """Replace the first occurrence of ``old`` by ``new``, in the file of the blob id ``expected`` if one is given."""

    path: str
    old: bytes
    new: bytes
    expected: str | None = None

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The path."""
        return (self.path,)

    def plan(self, view: View) -> ChangePlan:
        """Refused when the old text is empty or absent."""
        data = view.data(self.path)
        _require_hash(view, self.path, self.expected)
        if not self.old:
            raise Refusal("write_conflict", "The text to replace is empty; say which text to replace.")
        if self.old not in data:
            raise Refusal(
                "write_conflict", f"The text to replace is not in {self.path!r}. Read the file and try again."
            )
        return ChangePlan({self.path: data.replace(self.old, self.new, 1)}, f"Edit {self.path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePath(WriteOperation):
    """Take out a file (of the blob id ``expected`` if one is given), or a folder with all that is in it."""

    path: str
    expected: str | None = None

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The path."""
        return (self.path,)

    def plan(self, view: View) -> ChangePlan:
        """Refused when nothing is there."""
        _require_file_hash(view, self.path, self.expected)
        return ChangePlan(dict.fromkeys(_files_at(view, self.path)), f"Delete {self.path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePath(WriteOperation):
    """Move a file (of the blob id ``expected`` if one is given) or a folder; nothing may be at the target."""

    source: str
    target: str
    expected: str | None = None

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """Both paths."""
        return (self.source, self.target)

    def plan(self, view: View) -> ChangePlan:
        """Refused when the source is absent, the target is taken, or it lies within the source."""
        moved = _files_at(view, self.source)
        _require_file_hash(view, self.source, self.expected)
        if is_under(self.target, self.source):
            raise path_refusal(self.target, f"it lies within {self.source!r}, which is being moved")
        if view.entry(self.target) is not None:
            raise Refusal("write_conflict", f"There is already a file {self.target!r}.")
        require_free_path(view, self.target)
        files: dict[str, Content] = dict.fromkeys(moved)
        files.update({self.target + path.removeprefix(self.source): entry for path, entry in moved.items()})
        return ChangePlan(files, f"Move {self.source} to {self.target}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitExternalEdits(WriteOperation):
    """Commit a person's edits of files below ``paths`` that no longer change. The committer examines
    ``affected_paths`` and changes nothing else."""

    paths: tuple[str, ...] = ("",)

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The paths; "" is everything."""
        return self.paths

    def plan(self, view: View) -> ChangePlan:
        """Plan no change: the commit holds the edits by hand alone."""
        return ChangePlan({})


def edit_operation(
    path: str, old: str, new: str, *, actor: str, reason: str, scope: Scope, expected: str | None
) -> EditFile:
    """Return the operation that replaces the first ``old``. Raises Refusal for a path or text that is not allowed."""
    return EditFile(
        actor=actor,
        reason=reason,
        scope=scope,
        path=normalize_path(path),
        old=encode_text(path, old),
        new=encode_text(path, new),
        expected=expected,
    )


def move_operation(
    source: str, target: str, *, actor: str, reason: str, scope: Scope, expected: str | None
) -> MovePath:
    """Return the operation to move a file or folder. Raises Refusal for a path that is not allowed."""
    return MovePath(
        actor=actor,
        reason=reason,
        scope=scope,
        source=normalize_path(source),
        target=normalize_path(target),
        expected=expected,
    )


def delete_operation(path: str, *, actor: str, reason: str, scope: Scope, expected: str | None) -> DeletePath:
    """Return the operation to delete a file or folder. Raises Refusal for a path that is not allowed."""
    return DeletePath(actor=actor, reason=reason, scope=scope, path=normalize_path(path), expected=expected)


def _files_at(view: View, path: str) -> dict[str, BlobEntry]:
    single = view.entry(path)
    found = view.files_under(path) if single is None else {path: single}
    if not found:
        raise file_not_found(path)
    return found


def _require_file_hash(view: View, path: str, expected: str | None) -> None:
    """As ``_require_hash``, of something that must be there; a folder has no hash."""
    if expected is not None and view.entry(path) is None and view.is_folder(path):
        raise Refusal("write_conflict", f"{path!r} is a folder; only a file can have an expected content.")
    _require_hash(view, path, expected)


def _require_hash(view: View, path: str, expected: str | None) -> None:
    if expected is None:
        return
    entry = view.entry(path)
    if expected == ("" if entry is None else str(entry.blob)):
        return
    said = (
        "it exists already" if not expected else "it was changed since it was read" if entry else "it is gone"
    )
    raise Refusal("write_conflict", f"{path!r} was not written: {said}. Read it again and decide.")


def require_free_path(view: View, path: str, *, without: Collection[str] = ()) -> None:
    """Raises Refusal ``invalid_path``: a folder is at the path, or a file stands where it needs a folder.

    Files ``without`` which it would be count as gone.
    """
    above = view.blocking_file(path)
    if above is not None and above not in without:
        raise path_refusal(path, f"{above!r} is a file, not a folder")
    if (
        view.entry(path) is None
        and view.is_folder(path)
        and not view.files_under(path).keys() <= set(without)
    ):
        raise path_refusal(path, "it is a folder")
