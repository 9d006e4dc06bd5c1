"""The path index: a derived table of which commits touched which path, so that the history of one file in 100
000 commits is a look-up.

Deleting it loses nothing. Commits are numbered so that parents come first; those that follow each other
without a fork or a merge are a *segment*. A commit touches a path when the path's state differs from that in
every parent (as in ``git log``), and then touches all folders above.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import apsw
import pygit2
from pygit2.enums import SortMode

from trunkline.api.bus import Refusal
from trunkline.api.store import parents
from trunkline_git_store.index.database import DerivedDatabase
from trunkline_git_store.repository import Repository
from trunkline_git_store.tree_diff import TreeDiffer

_log = logging.getLogger(__name__)

T = TypeVar("T")

VERSION = 1
SCHEMA = f"""
PRAGMA user_version = {VERSION};
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE commits(number INTEGER PRIMARY KEY, id BLOB UNIQUE, segment INTEGER);
CREATE INDEX commits_of ON commits(segment, number);
CREATE TABLE segments(id INTEGER PRIMARY KEY, parents TEXT);
CREATE TABLE paths(id INTEGER PRIMARY KEY, path TEXT UNIQUE);
CREATE TABLE steps(path INTEGER, number INTEGER, PRIMARY KEY(path, number)) WITHOUT ROWID;
CREATE INDEX steps_at ON steps(number);
"""
BATCH = 1_000
TRUNCATE_LIMIT = 10_000
"""The number of commits that may vanish (a person went back in git) before the table is rebuilt."""


class CommitPosition(NamedTuple):
    """The position of a commit: its number and its segment."""

    number: int
    segment: int


class PathHistory:
    """The table, open for questions. It stands still: what is committed meanwhile is not part of the answer."""

    def __init__(self, connection: apsw.Connection, repository: Repository, head: pygit2.Oid | None) -> None:
        self._connection = connection
        self.repository = repository
        self._head = head

    def version(self, name: str | None) -> pygit2.Commit:
        """The commit that a full or shortened id names; None names the newest in the table.

        Raises:
            Refusal: ``not_found``.
        """
        if name is None and self._head is not None:
            return self.repository.commit(self._head)
        found = self.repository.version(name or "")
        if found is None:
            raise Refusal("not_found", f"Memory has no version {(name or 'at all')[:64]!r}.")
        return found

    def newest_commits(self, path: str, limit: int, *, until: int | None = None) -> list[pygit2.Oid]:
        """The newest commits that touched a path ("" is everything), not newer than the number ``until``."""
        found = self._connection.execute(
            "SELECT commits.id FROM paths JOIN steps ON steps.path = paths.id"
            " JOIN commits ON commits.number = steps.number"
            " WHERE paths.path = ? AND steps.number <= ? ORDER BY steps.number DESC LIMIT ?",
            (path, 2**62 if until is None else until, limit),
        )
        return [pygit2.Oid(raw=raw) for (raw,) in found]

    def position(self, commit: pygit2.Oid) -> CommitPosition | None:
        """Return the position of a commit; None for one that is not in the history of the branch."""
        row = self._connection.execute(
            "SELECT number, segment FROM commits WHERE id = ?", (commit.raw,)
        ).fetchone()
        return None if row is None else CommitPosition(*row)

    def last_change_in_segment(self, path: str, place: CommitPosition) -> pygit2.Oid | None:
        """The newest commit of the place's segment that touched a path and is not after the place."""
        raw = self._connection.execute(
            "SELECT commits.id FROM paths JOIN steps ON steps.path = paths.id"
            " JOIN commits ON commits.number = steps.number"
            " WHERE paths.path = ? AND steps.number <= ? AND segment = ? ORDER BY steps.number DESC LIMIT 1",
            (path, place.number, place.segment),
        ).get
        return None if raw is None else pygit2.Oid(raw=raw)

    def first_commit(self, segment: int) -> pygit2.Oid:
        """A segment's first commit."""
        raw = self._connection.execute(
            "SELECT id FROM commits WHERE segment = ? ORDER BY number LIMIT 1", (segment,)
        ).get
        return pygit2.Oid(raw=raw)

    def parents(self, segment: int) -> list[pygit2.Oid]:
        """The commits that a segment's first one follows."""
        text = self._connection.execute("SELECT parents FROM segments WHERE id = ?", (segment,)).get
        return [pygit2.Oid(hex=name) for name in json.loads(text)]


class PathIndex:
    """The table of one memory root. One thread at a time."""

    def __init__(self, root: Path, file: Path) -> None:
        self.repository = Repository(root)
        self._database = DerivedDatabase(file, version=VERSION, schema=SCHEMA)

    def query(self, question: Callable[[PathHistory], T]) -> T:
        """Put a question, when everything that was committed is in the table."""

        def job(connection: apsw.Connection) -> T:
            head = self._catch_up(connection)
            return question(PathHistory(connection, self.repository, head))

        return self._database.use(job)

    def catch_up(self) -> None:
        """Bring the table to the last commit, from wherever it stands."""
        self._database.use(self._catch_up)

    def drop(self) -> None:
        """Drop the table, because history was rewritten."""
        self._database.drop()
        self.repository.reopen()

    def close(self) -> None:
        """Close the database."""
        self._database.close()
        self.repository.close()

    def _catch_up(self, connection: apsw.Connection) -> pygit2.Oid | None:
        """Returns the commit up to which everything is in the table; None before the first."""
        head = self.repository.head()
        name = connection.execute("SELECT value FROM meta WHERE key = 'head'").get
        known = None if name is None else pygit2.Oid(hex=name)
        if head is None or known == head:
            return head
        if known is not None and not self.repository.includes(head, str(known)):
            known = self._truncate(connection, known, head)
        walk = self.repository.git.walk(head, SortMode.TOPOLOGICAL | SortMode.REVERSE)
        if known is not None:
            walk.hide(known)
        writer = _PathIndexWriter(connection, self.repository)
        while batch := [commit for _, commit in zip(range(BATCH), walk, strict=False)]:
            with connection:
                for commit in batch:
                    writer.add(commit)
        with connection:
            connection.execute("REPLACE INTO meta VALUES('head', ?)", (str(head),))
        return head

    def _truncate(
        self, connection: apsw.Connection, known: pygit2.Oid, head: pygit2.Oid
    ) -> pygit2.Oid | None:
        """Forget the commits that are no longer in the branch's history; returns up to where it is known then."""
        base = self.repository.git.merge_base(known, head) if known in self.repository.git else None
        place = None if base is None else PathHistory(connection, self.repository, base).position(base)
        with connection:
            if place is None or self._later(connection, place) > TRUNCATE_LIMIT:
                for table in ("meta", "commits", "segments", "paths", "steps"):
                    connection.execute(f"DELETE FROM {table}")
                return None
            connection.execute("DELETE FROM meta")
            connection.execute("DELETE FROM steps WHERE number > ?", (place.number,))
            connection.execute("DELETE FROM commits WHERE number > ?", (place.number,))
            connection.execute("DELETE FROM segments WHERE id NOT IN (SELECT segment FROM commits)")
        return None

    def _later(self, connection: apsw.Connection, place: CommitPosition) -> int:
        count = connection.execute("SELECT max(number) - ? FROM commits", (place.number,)).get
        return int(count)


class _PathIndexWriter:
    """Adds commits; parents before children. What is there already stays as it is."""

    def __init__(self, connection: apsw.Connection, repository: Repository) -> None:
        self._connection = connection
        self._root = repository.folder.parent
        self._trees = TreeDiffer(repository.git)
        self._paths: dict[str, int] = {}

    def add(self, commit: pygit2.Commit) -> None:
        """Add a commit."""
        known = self._connection.execute("SELECT 1 FROM commits WHERE id = ?", (commit.id.raw,)).get
        if known is not None:
            return
        segment = self._segment(commit)
        self._connection.execute("INSERT INTO commits(id, segment) VALUES(?, ?)", (commit.id.raw, segment))
        number = self._connection.last_insert_rowid()
        rows = [(self._path(path), number) for path in with_folders(self._touched(commit))]
        self._connection.executemany("INSERT INTO steps VALUES(?, ?)", rows)

    def _touched(self, commit: pygit2.Commit) -> set[str]:
        try:
            return touched_files(self._trees, commit)
        except (KeyError, pygit2.GitError):
            return self._retry_after_reopen(commit.id)

    def _retry_after_reopen(self, commit: pygit2.Oid) -> set[str]:
        """Read a commit again with a fresh repository: an object that seems missing may have been packed
        meanwhile.

        A lost commit leaves the rest of history readable, so it is logged and skipped.
        """
        repository = Repository(self._root)
        try:
            return touched_files(TreeDiffer(repository.git), repository.commit(commit))
        except (KeyError, pygit2.GitError) as error:
            _log.error("what %s changed cannot be read: %s", commit, error)
            return set()
        finally:
            repository.close()

    def _segment(self, commit: pygit2.Commit) -> int:
        """Return the segment of the only parent when that parent has no other child yet; else a new segment."""
        names = [str(parent) for parent in commit.parent_ids]
        if len(names) == 1:
            (parent,) = commit.parent_ids
            found = self._connection.execute(
                "SELECT segment FROM commits AS own WHERE id = ? AND NOT EXISTS"
                " (SELECT 1 FROM commits WHERE segment = own.segment AND number > own.number)",
                (parent.raw,),
            ).get
            if found is not None:
                return int(found)
        self._connection.execute("INSERT INTO segments(parents) VALUES(?)", (json.dumps(names),))
        return self._connection.last_insert_rowid()

    def _path(self, path: str) -> int:
        if path not in self._paths:
            self._connection.execute("INSERT OR IGNORE INTO paths(path) VALUES(?)", (path,))
            found = self._connection.execute("SELECT id FROM paths WHERE path = ?", (path,)).get
            self._paths[path] = int(found)
        return self._paths[path]


def touched_files(trees: TreeDiffer, commit: pygit2.Commit) -> set[str]:
    """The files whose state in a commit is that of none of its parents."""
    before: list[pygit2.Oid | None] = [parent.tree_id for parent in commit.parents]
    return set.intersection(
        *({path for path, _ in trees.changed_files(tree, commit.tree_id)} for tree in before or [None])
    )


def with_folders(paths: Iterable[str]) -> Iterator[str]:
    """The paths and the folders above them, each once, "" among them when there is any."""
    found: set[str] = set()
    for path in paths:
        found.update((path, "", *parents(path)))
    return iter(found)
