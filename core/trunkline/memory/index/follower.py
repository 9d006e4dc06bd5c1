"""Keeping the derived index abreast of the last commit. Writes the index; it is asked in ``memory.search``."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pygit2

from trunkline.memory.conversations import ConversationCache, names_of, parse
from trunkline.memory.index.conversation import turns
from trunkline.memory.index.database import Database
from trunkline.memory.index.kinds import passages
from trunkline.memory.index.passage import micros
from trunkline.memory.index.rows import forget, forget_all, forget_lines, insert
from trunkline.memory.repository import Entry, Repository, differences, files_in
from trunkline.messages.conversation import ConversationSummary
from trunkline.words.stems import Stems

BATCH = 1_000
"""Files that are taken in by one transaction: each ends with a segment that has to be merged."""


class Index:
    """The index of one memory root. One thread at a time."""

    def __init__(self, root: Path, file: Path, cache: ConversationCache) -> None:
        self.repository = Repository(root)
        self.database = Database(file)
        self.stems = Stems()
        self._cache = cache

    def catch_up(self) -> None:
        """Bring the index to the last commit, from wherever it stands."""
        self.database.use(self._catch_up)

    def drop(self) -> None:
        """Lose everything that is derived, because history was written anew."""
        self.database.drop()
        self.repository.reopen()

    def rebuild(self, told: Callable[[int], None]) -> None:
        """Make it anew; ``told`` hears how many files are in."""
        self.database.use(lambda connection: self._catch_up(connection, told, anew=True))

    def size(self) -> int:
        """How many files there are to take in, about: as many as are in, if any are."""
        known = self.database.use(
            lambda connection: int(connection.execute("SELECT count(*) FROM files").get)
        )
        return known or sum(1 for _ in files_in(self.repository.tree(self.repository.head())))

    def close(self) -> None:
        """Close the database."""
        self.database.close()
        self.repository.close()

    def _catch_up(
        self,
        connection: apsw.Connection,
        told: Callable[[int], None] = lambda done: None,
        *,
        anew: bool = False,
    ) -> None:
        head = self.repository.head()
        known = None if anew else connection.execute("SELECT value FROM meta WHERE key = 'head'").get
        if head is None or known == str(head):
            return
        changes, done = self._changes(connection, known, head), 0
        while batch := [change for _, change in zip(range(BATCH), changes, strict=False)]:
            with connection:
                for path, entry in batch:
                    self._update(connection, path, entry)
            done += len(batch)
            told(done)
        with connection:
            connection.execute("REPLACE INTO meta VALUES('head', ?)", (str(head),))

    def _changes(
        self, connection: apsw.Connection, known: str | None, head: pygit2.Oid
    ) -> Iterator[tuple[str, Entry | None]]:
        """What the index must take in; everything when it does not know where it stands."""
        before = self.repository.version(known) if known else None
        tree = self.repository.commit(head).tree_id
        if before is not None:
            return differences(self.repository.git, before.tree_id, tree)
        with connection:
            forget_all(connection)
        return differences(self.repository.git, None, tree)

    def _update(self, connection: apsw.Connection, path: str, entry: Entry | None) -> None:
        row = connection.execute(
            "SELECT id, blob, size, height FROM files WHERE path = ?", (path,)
        ).fetchone()
        if row is not None and entry is not None and row[1] == str(entry.blob):
            return
        if entry is None:
            if row is not None:
                forget(connection, row[0])
            return
        if names_of(path) is not None:
            self._update_conversation(connection, path, entry, row)
            return
        if row is not None:
            forget(connection, row[0])
        data = self.repository.data(entry.blob)
        insert(connection, self.stems, _file(connection, path, entry, len(data), 0), passages(path, data))

    def _update_conversation(
        self, connection: apsw.Connection, path: str, entry: Entry, row: tuple[int, str, int, int] | None
    ) -> None:
        """Only what is new of a conversation that grew."""
        conversation = self._cache.get(str(entry.blob)) or parse(path, self.repository.data(entry.blob))
        text = conversation.text  # it may grow while we look: only what is in this text counts
        height, known = text.count(b"\n") + (not text.endswith(b"\n")), 0
        if row is not None and len(text) > row[2] and _blob_id(text[: row[2]]) == row[1]:
            file, known = row[0], row[3]
            connection.execute(
                "UPDATE files SET blob = ?, size = ?, height = ? WHERE id = ?",
                (str(entry.blob), len(text), height, file),
            )
        else:
            if row is not None:
                forget(connection, row[0])
            file = _file(connection, path, entry, len(text), height)
        said = turns(conversation, known, height)
        if known and said:
            forget_lines(connection, file, said[0].line)
        insert(connection, self.stems, file, said)
        _list(connection, file, conversation.summary)


def _file(connection: apsw.Connection, path: str, entry: Entry, size: int, height: int) -> int:
    connection.execute(
        "INSERT INTO files(path, blob, size, height) VALUES(?, ?, ?, ?)",
        (path, str(entry.blob), size, height),
    )
    return connection.last_insert_rowid()


def _list(connection: apsw.Connection, file: int, summary: ConversationSummary) -> None:
    connection.execute(
        "REPLACE INTO conversations VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            file,
            summary.id,
            summary.block,
            summary.title,
            micros(summary.created_at),
            micros(summary.updated_at),
            summary.message_count,
        ),
    )


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
