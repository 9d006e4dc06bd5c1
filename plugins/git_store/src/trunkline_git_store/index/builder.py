"""Making the index from nothing: one thread takes files apart while another writes what came of them.

Whoever dies on the way leaves an index that does not know its commit, so the next one begins anew.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import apsw

from trunkline_git_store.index.rows import RowBatch, write
from trunkline_git_store.index.schema import INDICES

FILES = 5_000
MAX_CHARACTERS = 4_000_000
"""Limits of the files and the text that are written at once: they are in main memory three times, and each
write ends with a segment that must be merged."""


def build_index(
    connection: apsw.Connection,
    rows: RowBatch,
    files: Iterable[Callable[[RowBatch], None]],
    on_progress: Callable[[int], None],
) -> None:
    """Fill empty tables with files, each of which adds itself to ``rows``; ``on_progress`` hears how many are in."""
    for name, _ in INDICES:
        connection.execute(f"DROP INDEX IF EXISTS {name}")
    with ThreadPoolExecutor(1, thread_name_prefix="memory-index") as pool:
        writer, done = _RowWriter(connection, pool), 0
        for done, add in enumerate(files, start=1):
            add(rows)
            if done % FILES == 0 or rows.characters > MAX_CHARACTERS:
                writer.write(rows)
                on_progress(done)
        writer.write(rows)
        writer.wait()
        on_progress(done)
    for name, columns in INDICES:
        connection.execute(f"CREATE INDEX {name} {columns}")


class _RowWriter:
    """Writes one lot of rows while the next is made."""

    def __init__(self, connection: apsw.Connection, pool: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._pool = pool
        self._writing: Future[None] | None = None

    def write(self, rows: RowBatch) -> None:
        """Take the rows over, once those before are written."""
        packed = rows.statements()
        rows.reset()
        self.wait()
        self._writing = self._pool.submit(self._write, packed)

    def wait(self) -> None:
        """Return when what was taken over is written. Raises what writing raised."""
        if self._writing is not None:
            self._writing.result()

    def _write(self, packed: list[tuple[str, str]]) -> None:
        with self._connection:
            write(self._connection, packed)
