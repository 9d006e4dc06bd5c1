"""The difference between two versions, for people and programs: a unified diff. Read-only."""

import pygit2
from pygit2.enums import DeltaStatus

from trunkline.api.bus import Refusal
from trunkline.api.store import DifferenceKind, FileDifference, MemoryDifference, is_under
from trunkline_git_store.history.path_index import PathHistory

TEXT_BYTES = 1024 * 1024
"""Bytes of diff text in one answer; beyond it files are named and not shown."""

_KINDS: dict[DeltaStatus, DifferenceKind] = {
    DeltaStatus.ADDED: "added",
    DeltaStatus.DELETED: "deleted",
    DeltaStatus.RENAMED: "moved",
}


def diff(steps: PathHistory, path: str, old: str | None, new: str | None) -> MemoryDifference:
    """Return the difference between ``old`` and ``new`` (None: the newest version) at a path.

    Without ``old`` it is the last change of the path, as seen from ``new``.

    Raises:
        Refusal: ``not_found``: no such version, or nothing ever happened at the path.
    """
    after = steps.version(new)
    if old is None:
        after = last_change(steps, path, after)
        before = after.parents[0] if after.parents else None
    else:
        before = steps.version(old)
    files, text, whole = _readable_files(_between(before, after), path)
    return MemoryDifference(
        path=path,
        old="" if before is None else str(before.id),
        new=str(after.id),
        files=files,
        text=text,
        whole=whole,
    )


def last_change(steps: PathHistory, path: str, until: pygit2.Commit) -> pygit2.Commit:
    """The newest commit that touched a path, up to one. Raises Refusal ``not_found``."""
    place = steps.position(until.id)
    found = steps.newest_commits(path, 1, until=place.number) if place is not None else []
    if not found:
        raise Refusal("not_found", f"There was never anything at {path!r} in memory.")
    return steps.repository.commit(found[0])


def _between(old: pygit2.Commit | None, new: pygit2.Commit) -> pygit2.Diff:
    found = new.tree.diff_to_tree(swap=True) if old is None else old.tree.diff_to_tree(new.tree)
    found.find_similar()
    return found


def _readable_files(diff: pygit2.Diff, path: str) -> tuple[tuple[FileDifference, ...], str, bool]:
    """The files at or under a path, their text, and whether that is all of it."""
    files, texts, room = list[FileDifference](), list[str](), TEXT_BYTES
    for number, delta in enumerate(diff.deltas):
        if not (is_under(delta.new_file.path, path) or is_under(delta.old_file.path, path)):
            continue
        patch = diff[number]
        assert patch is not None
        _, added, removed = patch.line_stats
        moved = delta.status == DeltaStatus.RENAMED
        files.append(
            FileDifference(
                path=delta.new_file.path,
                kind=_KINDS.get(delta.status, "changed"),
                added=added,
                removed=removed,
                source=delta.old_file.path if moved else None,
            )
        )
        text = patch.data.decode("utf-8", "replace")
        if len(text) <= room:
            texts.append(text)
        room -= len(text)
    return tuple(files), "".join(texts), room >= 0
