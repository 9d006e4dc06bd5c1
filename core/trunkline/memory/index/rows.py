"""Passages as rows of the index."""

from collections.abc import Iterable, Sequence

import apsw

from trunkline.memory.index.passage import ChunkRow, Passage
from trunkline.memory.index.schema import TABLES
from trunkline.words.stems import Stems

_OF_FILE = "(SELECT id FROM passages WHERE file = ? AND line >= ?)"


def insert(connection: apsw.Connection, stems: Stems, file: int, found: Sequence[Passage]) -> None:
    """Add passages of a file."""
    known: dict[str, str] = {}
    languages: set[str] = set()

    def stemmed(texts: Iterable[str]) -> str:
        for text in texts:
            if text not in known:
                language, known[text] = stems.of_text(text)
                languages.add(language)
        return " ".join(known[text] for text in texts)

    for passage in found:
        row = _insert(connection, file, passage)
        connection.execute(
            "INSERT INTO words(rowid, text, before, after, tags) VALUES(?, ?, ?, ?, ?)",
            (row, *map(stemmed, ((passage.text,), passage.before, passage.after, _tags(passage)))),
        )
    connection.executemany("INSERT OR IGNORE INTO languages VALUES(?)", ((name,) for name in languages))


def _tags(passage: Passage) -> tuple[str, ...]:
    """The tags by which a passage can be found, as one text: an archived chunk cannot be."""
    return (" ".join(passage.tags),) if passage.text and passage.tags else ()


def _insert(connection: apsw.Connection, file: int, passage: Passage) -> int:
    connection.execute(
        "INSERT INTO passages(file, line, page, kind, name, at, speaker, confidence, conversation,"
        " asks) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            file,
            passage.line,
            passage.page,
            passage.kind,
            passage.name,
            passage.at,
            passage.speaker,
            passage.confidence,
            passage.conversation,
            passage.asks,
        ),
    )
    row = connection.last_insert_rowid()
    for tag in passage.tags:
        connection.execute("INSERT OR IGNORE INTO tags VALUES(?, ?)", (tag, row))
    for link in passage.links:
        connection.execute(
            "INSERT INTO links VALUES(?, ?, ?, ?)", (row, link.target, link.type, link.strength)
        )
    if passage.chunk is not None:
        _insert_chunk(connection, row, passage, passage.chunk)
    return row


def _insert_chunk(connection: apsw.Connection, row: int, passage: Passage, chunk: ChunkRow) -> None:
    connection.execute(
        "INSERT INTO chunks VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        ),
    )


def forget_lines(connection: apsw.Connection, file: int, line: int) -> None:
    """Take the passages of a file out that begin on a line or behind it."""
    connection.execute(f"DELETE FROM words WHERE rowid IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM tags WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM links WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute(f"DELETE FROM chunks WHERE passage IN {_OF_FILE}", (file, line))
    connection.execute("DELETE FROM passages WHERE file = ? AND line >= ?", (file, line))


def forget(connection: apsw.Connection, file: int) -> None:
    """Take a file out."""
    forget_lines(connection, file, 0)
    connection.execute("DELETE FROM conversations WHERE file = ?", (file,))
    connection.execute("DELETE FROM files WHERE id = ?", (file,))


def forget_all(connection: apsw.Connection) -> None:
    """Begin anew."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("INSERT INTO words(words) VALUES('delete-all')")
