"""SQLite files of other systems, opened so that nothing of them is changed and nothing in them runs."""

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from trunkline.api.importer import Source

QUERY_TIMEOUT = 120.0
"""Seconds that a query may take. A hostile file can contain one that never ends."""


class SqliteTables:
    """The tables of a file; nothing else of it is looked at. What cannot be read is trouble of the source."""

    def __init__(self, connection: sqlite3.Connection, trouble: Callable[[str], None]) -> None:
        self._connection = connection
        self._trouble = trouble
        rows = self._ask("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        virtual = "CREATE VIRTUAL"
        self._tables = {
            row["name"] for row in rows if row["sql"] and not row["sql"].upper().startswith(virtual)
        }

    def rows(self, table: str, *, order: str) -> Iterator[dict[str, Any]]:
        """All rows of a table, each by the names of its columns; none when there is no such table."""
        if table in self._tables:
            yield from self._ask(f'SELECT * FROM "{table}" ORDER BY "{order}", rowid')

    def _ask(self, question: str) -> Iterator[dict[str, Any]]:
        try:
            cursor = self._connection.execute(question)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except sqlite3.Error as error:
            self._trouble(f"it is not a readable database ({error})")


@contextmanager
def open_database(source: Source, path: str) -> Iterator[SqliteTables]:
    """A copy of a file, with what its log holds that is not in it yet."""
    with tempfile.TemporaryDirectory(prefix="trunkline-import-") as folder:
        copy = Path(folder) / "copy.db"
        for suffix in ("", "-wal"):
            if suffix == "" or source.has(path + suffix):
                shutil.copyfile(source.file(path + suffix), copy.with_name(copy.name + suffix))
        source.used.update(path + suffix for suffix in ("-shm", "-journal") if source.has(path + suffix))
        with closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            until = time.monotonic() + QUERY_TIMEOUT
            connection.set_progress_handler(lambda: time.monotonic() > until, 100_000)
            yield SqliteTables(connection, lambda why: source.trouble(path, why))
