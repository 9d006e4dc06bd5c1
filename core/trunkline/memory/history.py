"""What happened to a path, newest first, with the states before. Reads only."""

from collections.abc import Iterator

import pygit2

from trunkline.memory.batch import reason_of
from trunkline.memory.index.passage import as_text
from trunkline.memory.repository import Repository, commit_time, entry_at, id_at, walk_back
from trunkline.messages.memory import MemoryChange

PREVIOUS_BYTES = 4 * 1024 * 1024
"""How much earlier text one answer carries; beyond it ``previous`` is None and the version is read on its own."""


def history(repository: Repository, path: str, limit: int) -> tuple[MemoryChange, ...]:
    """The newest ``limit`` changes of a file or folder."""
    head = repository.head()
    found: list[MemoryChange] = []
    budget = PREVIOUS_BYTES
    for commit in _touching(repository, head, path) if head is not None and limit > 0 else ():
        previous = _previous(repository, commit, path, budget)
        budget -= len(previous or "")
        found.append(
            MemoryChange(
                version=str(commit.id),
                message=reason_of(commit.message),
                author=commit.author.name,
                timestamp=commit_time(commit),
                previous=previous,
            )
        )
        if len(found) >= limit:
            break
    return tuple(found)


def _touching(repository: Repository, head: pygit2.Oid, path: str) -> Iterator[pygit2.Commit]:
    """The commits whose state of the path is that of none of their parents."""
    for commit in walk_back(repository, head):
        state = id_at(commit.tree, path)
        before = [id_at(parent.tree, path) for parent in commit.parents]
        if state not in before and (state is not None or before):
            yield commit


def _previous(repository: Repository, commit: pygit2.Commit, path: str, budget: int) -> str | None:
    entry = entry_at(commit.parents[0].tree, path) if commit.parents else None
    if entry is None:
        return None
    data = repository.data(entry.blob)
    return as_text(data) if len(data) <= budget else None
