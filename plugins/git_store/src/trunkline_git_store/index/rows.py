"""Passages as rows of the index: gathered, and handed to SQLite many at once.

All rows of a table travel as one JSON text. SQLite takes it apart in one step, in which Python's lock is free: rows are
written while others are made.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from trunkline_git_store.index.passage import ChunkColumns, Passage
from trunkline_git_store.index.schema import TABLES
from trunkline_git_store.stemmer import TextStemmer

_OF_FILE = "(SELECT id FROM passages WHERE file = ? AND line >= ?)"

_COLUMNS = {
    "files": "id, path, blob, size, height",
    "conversations": (
        "file, id, block, title, created, updated, count, one_shot, pinned, archived, origin, origin_turn, origin_step"
    ),
    "passages": "id, file, line, page, kind, name, at, speaker, role, confidence, conversation, asks",
    "asides": "passage",
    "words": "rowid, text, before, after, tags",
    "tags": "tag, passage",
    "links": "passage, target, type, strength",
    "chunks": "passage, id, place, archived, type, at, modified, expires, tokens, confidence, conversation, fault",
    "languages": "name",
}


_NUL = "\\u0000"
_VERBS = {"tags": "INSERT OR IGNORE", "languages": "INSERT OR IGNORE", "conversations": "REPLACE"}
"""Of what may be there already."""


def _statement(table: str, columns: str) -> str:
    verb = _VERBS.get(table, "INSERT")
    values = ", ".join(f"value ->> {number}" for number in range(columns.count(",") + 1))
    return f"{verb} INTO {table}({columns}) SELECT {values} FROM json_each(?)"


_STATEMENTS = {table: _statement(table, columns) for table, columns in _COLUMNS.items()}


class RowBatch:
    """Rows on their way. The next file and the next passage get the ids behind ``file`` and ``passage``."""

    def __init__(self, stems: TextStemmer, *, file: int = 0, passage: int = 0) -> None:
        self._stems = stems
        self._file = file
        self._passage = passage
        self.reset()

    @classmethod
    def after_existing(cls, connection: apsw.Connection, stems: TextStemmer) -> "RowBatch":
        """Rows behind those that are there."""
        file, passage = (
            connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").get
            for table in ("files", "passages")
        )
        return cls(stems, file=file, passage=passage)

    def reset(self) -> None:
        """Hold no rows any more; ids go on."""
        self._rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _COLUMNS}
        self._languages: set[str] = set()
        self.characters = 0

    def add_file(self, path: str, blob: str, size: int, height: int = 0) -> int:
        """A file; returns its id."""
        self._file += 1
        self._rows["files"].append((self._file, path, blob, size, height))
        return self._file

    def add_conversation(self, *row: Any) -> None:
        """The row of a conversation, its file's id first."""
        self._rows["conversations"].append(row)

    def add(self, file: int, passages: Sequence[Passage]) -> None:
        """The passages of a file."""
        known: dict[str, str] = {}
        for passage in passages:
            row = self._add(file, passage)
            texts = ((passage.text,), passage.before, passage.after, _tags(passage))
            words = [self._stemmed(known, text) if text else "" for text in texts]
            self._rows["words"].append((row, *words))
            self.characters += sum(map(len, words))

    def statements(self) -> list[tuple[str, str]]:
        """Return the statements to run, with their rows."""
        self._rows["languages"] = [(name,) for name in self._languages]
        return [(_STATEMENTS[table], _encoded(rows)) for table, rows in self._rows.items() if rows]

    def _stemmed(self, known: dict[str, str], texts: Iterable[str]) -> str:
        for text in texts:
            if text not in known:
                language, known[text] = self._stems.stem_text(text)
                self._languages.add(language)
        return " ".join([known[text] for text in texts])

    def _add(self, file: int, passage: Passage) -> int:
        self._passage += 1
        row = self._passage
        self._rows["passages"].append(
            (
                row,
                file,
                passage.line,
                passage.page,
                passage.kind,
                passage.name,
                passage.at,
                passage.speaker,
                passage.role,
                passage.confidence,
                passage.conversation,
                passage.asks,
            )
        )
        if passage.aside:
            self._rows["asides"].append((row,))
        self._rows["tags"] += [(tag, row) for tag in passage.tags]
        self._rows["links"] += [(row, link.target, link.type, link.strength) for link in passage.links]
        if passage.chunk is not None:
            self._add_chunk(row, passage, passage.chunk)
        return row

    def _add_chunk(self, row: int, passage: Passage, chunk: ChunkColumns) -> None:
        self._rows["chunks"].append(
            (
                row,
                passage.name,
                chunk.place,
                chunk.archived,
                chunk.type,
                passage.at,
                chunk.modified,
                chunk.expires,
                chunk.tokens,
                passage.confidence,
                passage.conversation,
                chunk.fault,
            )
        )


def insert(connection: apsw.Connection, stems: TextStemmer, file: int, passages: Sequence[Passage]) -> None:
    """Add passages of a file that is there."""
    rows = RowBatch.after_existing(connection, stems)
    rows.add(file, passages)
    write(connection, rows.statements())


def write(connection: apsw.Connection, packed: Iterable[tuple[str, str]]) -> None:
    """Write rows that were packed."""
    for statement, rows in packed:
        connection.execute(statement, (rows,))


def _encoded(rows: list[tuple[Any, ...]]) -> str:
    try:
        text = msgspec.json.encode(rows).decode()
    except UnicodeEncodeError:
        text = _NUL
    if _NUL in text:
        text = msgspec.json.encode([tuple(map(_without_invalid_characters, row)) for row in rows]).decode()
    return text


def _without_invalid_characters(value: Any) -> Any:
    """Return the text without surrogates, which UTF-8 cannot encode, and without NUL, which ends a text in SQLite."""
    return (
        value.encode("utf-8", "replace").decode().replace("\0", "\ufffd") if isinstance(value, str) else value
    )


def _tags(passage: Passage) -> tuple[str, ...]:
    """The tags by which a passage can be found, as one text: an archived chunk cannot be."""
    return (" ".join(passage.tags),) if passage.text and passage.tags else ()


def forget_lines(connection: apsw.Connection, file: int, line: int) -> None:
    """Take the passages of a file out that begin on a line or behind it."""
    connection.execute(f"DELETE FROM words WHERE rowid IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM asides WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM tags WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM links WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM chunks WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute("DELETE FROM passages WHERE file = ? AND line >= ?", (file, line))


def forget(connection: apsw.Connection, file: int) -> None:
    """Take a file out."""
    forget_lines(connection, file, 0)
    connection.execute("DELETE FROM conversations WHERE file = ?", (file,))
    connection.execute("DELETE FROM files WHERE id = ?", (file,))


def clear(connection: apsw.Connection) -> None:
    """Delete all rows."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("INSERT INTO words(words) VALUES('delete-all')")
