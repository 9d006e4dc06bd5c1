"""Reverting: the write operation that undoes a change, or restores a version.

Later changes of the same files stay when they are of other lines; where they are not, the operation is refused. Nothing
is removed from history: a revert is a change of its own, and can be reverted.
"""

from dataclasses import dataclass
from typing import NamedTuple

from trunkline.api.bus import Refusal
from trunkline.api.store import is_under
from trunkline_git_store.commit_batch import parse_reason
from trunkline_git_store.history.diff import last_change
from trunkline_git_store.history.line_diff import merge_lines
from trunkline_git_store.history.path_index import PathHistory
from trunkline_git_store.operations import ChangePlan, Content, WriteOperation, require_free_path
from trunkline_git_store.repository import BlobEntry, Snapshot, changed_files
from trunkline_git_store.view import View


class FileStates(NamedTuple):
    """A file before a change and after it; None for no file."""

    before: bytes | None
    after: bytes | None
    entry: BlobEntry | None = None
    """The same as ``before``, where the store has it."""


@dataclass(frozen=True, slots=True)
class RevertPlan:
    """A planned revert: the version to revert or to return to, its changes of each file, and the default
    reason."""

    version: str
    states: dict[str, FileStates]
    reason: str


def revert_plan(steps: PathHistory, path: str, name: str | None) -> RevertPlan:
    """Return the plan that reverts a version at a path ("": everywhere); without a name the last version that
    changed anything there.

    Raises:
        Refusal: ``not_found``: no such version, or it changed nothing at the path.
    """
    repository = steps.repository
    commit = last_change(steps, path, steps.version(None)) if name is None else steps.version(name)
    before = commit.parents[0].tree_id if commit.parents else None
    old = repository.snapshot(commit.parent_ids[0] if commit.parent_ids else None)
    new = repository.snapshot(commit.id)
    changed = [
        file for file, _ in changed_files(repository.git, before, commit.tree_id) if is_under(file, path)
    ]
    if not changed:
        raise Refusal("not_found", f"Version {str(commit.id)[:10]} did not change {path!r}.")
    subject = parse_reason(commit.message).partition("\n")[0]
    reason = f"Revert {str(commit.id)[:10]}: {subject}"
    return RevertPlan(str(commit.id), _states(steps, changed, old, new), reason)


def restore_plan(steps: PathHistory, path: str, name: str) -> RevertPlan:
    """Return the plan that reverts all changes at a path since a version.

    Raises:
        Refusal: ``not_found``: no such version, or nothing was at the path then.
    """
    then, now = (steps.repository.snapshot(steps.version(one).id) for one in (name, None))
    if path and then.entry(path) is None and not then.is_folder(path):
        raise Refusal("not_found", f"There was nothing at {path!r} in version {name[:64]!r}.")
    there = {file for file in _files(then, path) if then.entry(file) != now.entry(file)}
    added = {file for file in _files(now, path) if then.entry(file) is None}
    target = str(steps.version(name).id)
    reason = f"Go back to {target[:10]}" + (f" in {path}" if path else "")
    return RevertPlan(target, _states(steps, sorted(there | added), then, now), reason)


def _files(snapshot: Snapshot, path: str) -> list[str]:
    if path and snapshot.entry(path) is not None:
        return [path]
    return [file for file, _ in snapshot.files(path)]


def _states(steps: PathHistory, files: list[str], old: Snapshot, new: Snapshot) -> dict[str, FileStates]:
    def data(entry: BlobEntry | None) -> bytes | None:
        return None if entry is None else steps.repository.data(entry.blob)

    return {file: FileStates(data(old.entry(file)), data(new.entry(file)), old.entry(file)) for file in files}


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertFiles(WriteOperation):
    """Let the files be as they were before a change."""

    undoing: RevertPlan

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The paths."""
        return tuple(self.undoing.states)

    def plan(self, view: View) -> ChangePlan:
        """Refused when a later change stands in the way, or when there is nothing to take back any more."""
        files: dict[str, Content] = {}
        gone = {path for path, state in self.undoing.states.items() if state.before is None}
        for path, state in self.undoing.states.items():
            now = None if view.entry(path) is None else view.data(path)
            if now == state.before:
                continue
            files[path] = _reverted_content(path, now, state)
            if state.before is not None:
                require_free_path(view, path, without=gone)
        if not files:
            raise Refusal(
                "write_conflict", "There is nothing to revert: the file is as it was before that change."
            )
        return ChangePlan(files, self.undoing.reason)


def _reverted_content(path: str, now: bytes | None, state: FileStates) -> Content:
    """Return the content of a file after the revert. Raises Refusal ``write_conflict``."""
    if now == state.after:
        return state.before if state.entry is None else state.entry
    result = None
    if now is not None and state.before is not None and state.after is not None:
        result = merge_lines(state.after, now, state.before)
    if result is None:
        raise Refusal(
            "write_conflict",
            f"{path!r} was changed again after that, at the same place. Nothing was reverted; revert the later"
            " change first, or edit the file.",
        )
    return result
