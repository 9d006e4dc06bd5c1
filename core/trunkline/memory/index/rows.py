"""Passages as rows of the index."""

from collections.abc import Sequence

import apsw

from trunkline.memory.index.passage import ChunkRow, Passage
from trunkline.memory.index.schema import TABLES

_OF_FILE = "(SELECT id FROM passages WHERE file = ?)"


def insert(connection: apsw.Connection, file: int, found: Sequence[Passage]) -> None:
    """Add passages of a file."""
    for passage in found:
        connection.execute(
            "INSERT INTO passages(file, line, page, kind, name, at, speaker, confidence, conversation)"
            " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            ),
        )
        row = connection.last_insert_rowid()
        connection.execute("INSERT INTO words(rowid, text) VALUES(?, ?)", (row, passage.text))
        for tag in passage.tags:
            connection.execute("INSERT OR IGNORE INTO tags VALUES(?, ?)", (tag, row))
        for link in passage.links:
            connection.execute(
                "INSERT INTO links VALUES(?, ?, ?, ?)", (row, link.target, link.type, link.strength)
            )
        if passage.chunk is not None:
            _insert_chunk(connection, row, passage, passage.chunk)


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


def forget(connection: apsw.Connection, file: int) -> None:
    """Take a file out."""
    connection.execute(f"DELETE FROM words WHERE rowid IN {_OF_FILE}", (file,))
    connection.execute(f"DELETE FROM tags WHERE passage IN {_OF_FILE}", (file,))
    connection.execute(f"DELETE FROM links WHERE passage IN {_OF_FILE}", (file,))
    connection.execute(f"DELETE FROM chunks WHERE passage IN {_OF_FILE}", (file,))
    connection.execute("DELETE FROM passages WHERE file = ?", (file,))
    connection.execute("DELETE FROM conversations WHERE file = ?", (file,))
    connection.execute("DELETE FROM files WHERE id = ?", (file,))


def forget_all(connection: apsw.Connection) -> None:
    """Begin anew."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("INSERT INTO words(words) VALUES('delete-all')")
