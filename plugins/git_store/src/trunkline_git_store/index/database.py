"""The file of the derived index: SQLite with full text. Opens, checks, drops and rebuilds it; knows no content.

Nothing in it is worth saving: when it is missing, damaged or of another version it begins empty, and when the cache
folder cannot be written it lives in memory.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from trunkline_git_store.index.schema import SCHEMA, VERSION

_log = logging.getLogger(__name__)

T = TypeVar("T")

_BROKEN = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.FullError,
    OSError,
)


class DerivedDatabase:
    """A connection that rebuilds a damaged file. One thread at a time. ``prepare`` is called with each connection that
    is opened."""

    def __init__(
        self,
        file: Path,
        *,
        version: int = VERSION,
        schema: str = SCHEMA,
        prepare: Callable[[apsw.Connection], None] = lambda connection: None,
    ) -> None:
        self._file = file
        self._version = version
        self._schema = schema
        self._prepare = prepare
        self._connection: apsw.Connection | None = None
        self._inode: int | None = None

    def use(self, job: Callable[[apsw.Connection], T]) -> T:
        """Run ``job``; when the index turns out to be broken, run it again on an empty one."""
        try:
            return job(self._open())
        except _BROKEN as error:
            _log.warning("the derived file %s is rebuilt: %s", self._file, error)
            self.drop()
        try:
            return job(self._open())
        except _BROKEN as error:
            _log.warning("the derived file %s is kept in memory only: %s", self._file, error)
            self.close()
            self._connection, self._inode = _fresh(":memory:", self._schema), None
            self._prepare(self._connection)
            return job(self._connection)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> apsw.Connection:
        if self._connection is not None and self._still_there():
            return self._connection
        self.close()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = _checked(str(self._file), self._version) or self._recreate()
        self._prepare(connection)
        self._connection, self._inode = connection, self._file.stat().st_ino
        return connection

    def _recreate(self) -> apsw.Connection:
        self.drop()
        return _fresh(str(self._file), self._schema)

    def _still_there(self) -> bool:
        if self._inode is None:
            return True
        try:
            return self._file.stat().st_ino == self._inode
        except OSError:
            return False

    def drop(self) -> None:
        """Remove the file; the next question begins with an empty one."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            try:
                self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
            except OSError as error:
                _log.warning("%s%s cannot be removed: %s", self._file, suffix, error)


def _checked(name: str, version: int) -> apsw.Connection | None:
    """Return a usable index; None when it must be rebuilt."""
    if not Path(name).exists():
        return None
    connection = apsw.Connection(name)
    try:
        _tune(connection)
        if connection.pragma("user_version") == version and connection.pragma("quick_check") == "ok":
            return connection
    except _BROKEN as error:
        _log.warning("the derived file %s cannot be used: %s", name, error)
    connection.close()
    return None


def _fresh(name: str, schema: str) -> apsw.Connection:
    connection = apsw.Connection(name)
    _tune(connection)
    with connection:
        connection.execute(schema)
    return connection


def _tune(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(2_000)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
