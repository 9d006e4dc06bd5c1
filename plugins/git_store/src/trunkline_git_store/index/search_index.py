"""Keeping the derived index abreast of the last commit. Writes the index; it is asked in ``memory.search``."""

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import pygit2

from trunkline.api.gateway import ConversationSummary
from trunkline.api.store import IndexStats, VectorStats, parse_conversation_path
from trunkline_git_store.conversations import ConversationCache, parse
from trunkline_git_store.index import field_ranking
from trunkline_git_store.index.builder import build_index
from trunkline_git_store.index.conversation import message_passages
from trunkline_git_store.index.database import DerivedDatabase
from trunkline_git_store.index.file_kinds import file_passages
from trunkline_git_store.index.passage import to_micros
from trunkline_git_store.index.rows import RowBatch, clear, forget, forget_lines, write
from trunkline_git_store.repository import BlobEntry, Repository, changed_files, files_in
from trunkline_git_store.stemmer import TextStemmer

BATCH = 1_000
"""Files that are taken in by one transaction: each ends with a segment that has to be merged."""


class SearchIndex:
    """The index of one memory root. One thread at a time."""

    def __init__(self, root: Path, file: Path, cache: ConversationCache) -> None:
        self.repository = Repository(root)
        self.database = DerivedDatabase(file, prepare=field_ranking.register)
        self.stems = TextStemmer()
        self._cache = cache

    def catch_up(self) -> None:
        """Bring the index to the last commit, from wherever it stands."""
        self.database.use(self._catch_up)

    def drop(self) -> None:
        """Drop everything that is derived, because history was rewritten."""
        self.database.drop()
        self.repository.reopen()

    def rebuild(self, on_progress: Callable[[int], None]) -> None:
        """Rebuild the index; ``on_progress`` is called with the number of indexed files."""
        self.database.use(lambda connection: self._catch_up(connection, on_progress, anew=True))

    def estimated_files(self) -> int:
        """Return the approximate number of files to index: the number that is indexed, if any."""
        known = self.database.use(
            lambda connection: int(connection.execute("SELECT count(*) FROM files").get)
        )
        return known or sum(1 for _ in files_in(self.repository.tree(self.repository.head())))

    def close(self) -> None:
        """Close the database."""
        self.database.close()
        self.repository.close()

    def is_made(self) -> bool:
        """Report whether it holds some state of memory."""
        return bool(self.database.use(lambda c: c.execute("SELECT 1 FROM meta WHERE key = 'head'").get))

    def _catch_up(
        self,
        connection: apsw.Connection,
        on_progress: Callable[[int], None] = lambda done: None,
        *,
        anew: bool = False,
    ) -> None:
        head = self.repository.head()
        known = None if anew else connection.execute("SELECT value FROM meta WHERE key = 'head'").get
        if head is None or known == str(head):
            return
        before = self.repository.version(known) if known else None
        tree = self.repository.commit(head).tree_id
        if before is None:
            self._begin_anew(connection, tree, on_progress)
        else:
            self._follow(connection, changed_files(self.repository.git, before.tree_id, tree), on_progress)
        with connection:
            connection.execute("REPLACE INTO meta VALUES('head', ?)", (str(head),))

    def _begin_anew(
        self, connection: apsw.Connection, tree: pygit2.Oid, on_progress: Callable[[int], None]
    ) -> None:
        """Take everything in."""
        with connection:
            clear(connection)
        files = (
            partial(self._add, path, entry)
            for path, entry in changed_files(self.repository.git, None, tree)
            if entry is not None
        )
        build_index(connection, RowBatch(self.stems), files, on_progress)

    def _add(self, path: str, entry: BlobEntry, rows: RowBatch) -> None:
        if parse_conversation_path(path) is not None:
            self._add_conversation(path, entry, rows)
            return
        data = self.repository.data(entry.blob)
        rows.add(rows.add_file(path, str(entry.blob), len(data)), file_passages(path, data))

    def _add_conversation(self, path: str, entry: BlobEntry, rows: RowBatch) -> None:
        conversation = self._cache.get(str(entry.blob)) or parse(path, self.repository.data(entry.blob))
        text = conversation.text  # it may grow while we look: only what is in this text counts
        height = _height(text)
        file = rows.add_file(path, str(entry.blob), len(text), height)
        rows.add(file, message_passages(conversation, 0, height))
        rows.add_conversation(*_listed(file, conversation.summary))

    def _follow(
        self,
        connection: apsw.Connection,
        changes: Iterator[tuple[str, BlobEntry | None]],
        on_progress: Callable[[int], None],
    ) -> None:
        """Take in what changed."""
        done = 0
        while batch := list(islice(changes, BATCH)):
            with connection:
                for path, entry in batch:
                    self._update(connection, path, entry)
            done += len(batch)
            on_progress(done)

    def _update(self, connection: apsw.Connection, path: str, entry: BlobEntry | None) -> None:
        row = connection.execute(
            "SELECT id, blob, size, height FROM files WHERE path = ?", (path,)
        ).fetchone()
        if row is not None and entry is not None and row[1] == str(entry.blob):
            return
        if row is not None and entry is not None and parse_conversation_path(path) is not None:
            self._update_conversation(connection, path, entry, row)
            return
        if row is not None:
            forget(connection, row[0])
        if entry is not None:
            rows = RowBatch.after_existing(connection, self.stems)
            self._add(path, entry, rows)
            write(connection, rows.statements())

    def _update_conversation(
        self, connection: apsw.Connection, path: str, entry: BlobEntry, row: tuple[int, str, int, int]
    ) -> None:
        """Only what is new of a conversation that grew."""
        file, blob, size, known = row
        conversation = self._cache.get(str(entry.blob)) or parse(path, self.repository.data(entry.blob))
        text = conversation.text  # it may grow while we look: only what is in this text counts
        if len(text) <= size or _blob_id(text[:size]) != blob:
            forget_lines(connection, file, known := 0)
        height = _height(text)
        connection.execute(
            "UPDATE files SET blob = ?, size = ?, height = ? WHERE id = ?",
            (str(entry.blob), len(text), height, file),
        )
        said = message_passages(conversation, known, height)
        if known and said:
            forget_lines(connection, file, said[0].line)
        rows = RowBatch.after_existing(connection, self.stems)
        rows.add(file, said)
        rows.add_conversation(*_listed(file, conversation.summary))
        write(connection, rows.statements())


def _height(text: bytes) -> int:
    """The lines of a text, the last one too if nothing ends it."""
    return text.count(b"\n") + (not text.endswith(b"\n"))


def _listed(file: int, summary: ConversationSummary) -> tuple[Any, ...]:
    origin = summary.forked_from
    return (
        file,
        summary.id,
        summary.block,
        summary.title,
        to_micros(summary.created_at),
        to_micros(summary.updated_at),
        summary.message_count,
        summary.one_shot,
        summary.pinned,
        summary.archived,
        *((origin.conversation, origin.turn, origin.step) if origin is not None else (None, None, None)),
    )


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def index_stats(connection: apsw.Connection, vectors: VectorStats | None) -> IndexStats:
    """Count everything. The size is that of SQLite's pages, whether it has written them back from its log or not."""

    def number(query: str) -> int:
        return int(connection.execute(query).get)

    def count(table: str) -> int:
        return number(f"SELECT count(*) FROM {table}")

    kinds = connection.execute("SELECT kind, count(*) FROM passages GROUP BY kind ORDER BY kind")
    return IndexStats(
        version=connection.execute("SELECT value FROM meta WHERE key = 'head'").get or "",
        files=count("files"),
        conversations=count("conversations"),
        passages=count("passages"),
        kinds=dict(kinds),
        languages=tuple(name for (name,) in connection.execute("SELECT name FROM languages ORDER BY name")),
        words=count("vocabulary"),
        size=number("PRAGMA main.page_count") * number("PRAGMA main.page_size"),
        vectors=vectors,
    )
