"""The changes of a path, newest first, with the states before. Read-only."""

import pygit2

from trunkline.api.memory import MemoryChange
from trunkline_git_store.commit_batch import parse_origin, parse_reason
from trunkline_git_store.history.path_index import PathHistory
from trunkline_git_store.index.passage import try_decode_text
from trunkline_git_store.repository import Repository, commit_time, entry_at

PREVIOUS_BYTES = 4 * 1024 * 1024
"""Bytes of earlier text in one answer; beyond it ``previous`` is None and the version is read separately."""


def list_changes(steps: PathHistory, path: str, limit: int) -> tuple[MemoryChange, ...]:
    """The newest ``limit`` changes of a file or folder."""
    found: list[MemoryChange] = []
    budget = PREVIOUS_BYTES
    for oid in steps.newest_commits(path, max(0, limit)):
        commit = steps.repository.commit(oid)
        origin = parse_origin(commit)
        previous = _previous(steps.repository, commit, path, budget)
        budget -= len(previous or "")
        found.append(
            MemoryChange(
                version=str(oid),
                message=parse_reason(commit.message),
                author=origin.actor,
                conversation=origin.conversation,
                turn=origin.turn,
                timestamp=commit_time(commit),
                previous=previous,
            )
        )
    return tuple(found)


def _previous(repository: Repository, commit: pygit2.Commit, path: str, budget: int) -> str | None:
    try:
        entry = entry_at(commit.parents[0].tree, path) if commit.parents else None
        data = None if entry is None else repository.data(entry.blob)
    except (KeyError, pygit2.GitError):  # damaged: the doctor tells
        return None
    return try_decode_text(data) if data is not None and len(data) <= budget else None
