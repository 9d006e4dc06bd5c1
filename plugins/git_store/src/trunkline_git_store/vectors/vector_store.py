"""The vectors, in a database attached to that of the index. A vector is kept once for each text, in eight bits a
number; among many, one bit a number chooses those that are compared in full (sqlite-vec).
"""

import hashlib
import logging
import math
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import apsw

from trunkline.api.memory import Vector

_log = logging.getLogger(__name__)

MAX_EXACT_VECTORS = 10_000
"""Vectors up to which all are compared in full: 5 ms on two cores. Beyond, one bit a number chooses."""

MIN_PRESELECTED = 48
"""The smallest number of vectors that are preselected by one bit per number; preselection takes longer with
more."""

MAX_DIMENSIONS = 8_192
"""Numbers of a vector that sqlite-vec takes."""

VERSION = "1"
_TABLES = """
CREATE TABLE vectors.meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE vectors.known(id INTEGER PRIMARY KEY, digest BLOB UNIQUE, vector BLOB);
CREATE VIRTUAL TABLE vectors.bits USING vec0(embedding bit[{bits}], chunk_size=4096);
"""

Scores = dict[int, float]


class VectorStore:
    """The vectors of one model. To be used with the connection of the index, and like it one thread at a time."""

    def __init__(self, file: Path, model: str) -> None:
        self._file = file
        self._model = model

    def attach(self, connection: apsw.Connection) -> bool:
        """Attach the file. False when it has no vectors of this model yet."""
        if "vectors" not in {name for _, name, _ in connection.execute("PRAGMA database_list")}:
            self._attach_file(connection)
        if not connection.execute("SELECT count(*) FROM vectors.sqlite_schema WHERE name = 'meta'").get:
            return False
        found = dict(connection.execute("SELECT key, value FROM vectors.meta"))
        return found.get("model") == self._model and found.get("version") == VERSION

    def accepts(self, connection: apsw.Connection, packed: bytes) -> bool:
        """Report whether there are vectors of this model, as long as this one: what is not cannot be compared."""
        return bool(here := self.dimensions(connection)) and _octets(here) * 8 == len(packed)

    def dimensions(self, connection: apsw.Connection) -> int:
        """The length of the vectors that are kept; 0 when there are none of this model."""
        if not self.attach(connection):
            return 0
        return int(connection.execute("SELECT value FROM vectors.meta WHERE key = 'dimensions'").get)

    def check_length(self, connection: apsw.Connection, length: int) -> None:
        """Refuse vectors of a length that none can have, or of another one than those that are kept. Raises
        ValueError."""
        if not 1 <= length <= MAX_DIMENSIONS:
            raise ValueError(f"its vectors have no numbers or more than {MAX_DIMENSIONS} numbers")
        if self.dimensions(connection) not in (0, length):
            raise ValueError(
                "its vectors have another length than before; if its model was changed, run: "
                "trunkline memory reindex --vectors"
            )

    def create(self, connection: apsw.Connection, dimensions: int) -> None:
        """Make room for vectors; those of another model are forgotten."""
        self.forget(connection)
        with connection:
            connection.execute(_TABLES.format(bits=_octets(dimensions) * 8))
            meta = {"model": self._model, "version": VERSION, "dimensions": str(dimensions)}
            connection.executemany("INSERT INTO vectors.meta VALUES(?, ?)", meta.items())
            connection.execute("UPDATE passages SET vector = NULL WHERE vector IS NOT NULL")

    def forget(self, connection: apsw.Connection) -> None:
        """Forget all vectors."""
        self.attach(connection)
        with connection:
            for table in ("bits", "known", "meta"):
                connection.execute(f"DROP TABLE IF EXISTS vectors.{table}")

    def find_ids(self, connection: apsw.Connection, digests: Iterable[bytes]) -> Mapping[bytes, int]:
        """The numbers of the texts that have vectors."""
        find = "SELECT id FROM vectors.known WHERE digest = ?"
        found = {digest: connection.execute(find, (digest,)).get for digest in digests}
        return {digest: row for digest, row in found.items() if row is not None}

    def put(self, connection: apsw.Connection, digest: bytes, vector: Vector | None) -> None:
        """Keep a text's vector. One that points nowhere is kept as none, and nothing is found by it."""
        packed = None if vector is None else quantize_int8(vector)
        connection.execute(
            "INSERT OR IGNORE INTO vectors.known(digest, vector) VALUES(?, ?)", (digest, packed)
        )
        if packed is not None and connection.changes():
            row = connection.last_insert_rowid()
            bits = quantize_binary(packed)
            connection.execute(
                "INSERT INTO vectors.bits(rowid, embedding) VALUES(?, vec_bit(?))", (row, bits)
            )

    def nearest(self, connection: apsw.Connection, vector: bytes, limit: int) -> Scores:
        """The vectors that are most alike, with their cosines."""
        count = connection.execute("SELECT max(id) FROM vectors.known").get or 0
        among, values = "vector IS NOT NULL", list[object]()
        if count > MAX_EXACT_VECTORS:
            near = "SELECT rowid FROM vectors.bits WHERE embedding MATCH vec_bit(?) AND k = ?"
            among, values = f"id IN ({near})", [quantize_binary(vector), max(MIN_PRESELECTED, limit // 4)]
        rows = connection.execute(
            f"SELECT id, {COSINE.format('vector')} AS alike FROM vectors.known WHERE {among}"
            " ORDER BY alike DESC LIMIT ?",
            (vector, *values, limit),
        )
        return dict(rows)

    def prune(self, connection: apsw.Connection) -> int:
        """Forget the vectors of texts that no passage has any more; how many there were."""
        gone = [
            row
            for (row,) in connection.execute(
                "SELECT id FROM vectors.known WHERE id NOT IN (SELECT vector FROM passages WHERE vector > 0)"
            )
        ]
        with connection:
            for table, key in (("known", "id"), ("bits", "rowid")):
                connection.executemany(
                    f"DELETE FROM vectors.{table} WHERE {key} = ?", ((row,) for row in gone)
                )
        return len(gone)

    def _attach_file(self, connection: apsw.Connection) -> None:
        import sqlite_vec

        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.enable_load_extension(False)
        lasting = connection.filename not in ("", ":memory:")
        place = str(self._file) if lasting else ":memory:"
        if not _opened(connection, place):
            _log.warning("the vectors of memory in %s are damaged and are rebuilt", place)
            for suffix in ("", "-wal", "-shm"):
                self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
            _opened(connection, place)


def _opened(connection: apsw.Connection, place: str) -> bool:
    """Attach a file; False when it cannot be used as it is."""
    try:
        connection.execute("ATTACH ? AS vectors", (place,))
        connection.execute("PRAGMA vectors.journal_mode = wal")
        connection.execute("PRAGMA vectors.synchronous = normal")
        if connection.execute("PRAGMA vectors.quick_check").get == "ok":
            return True
    except (apsw.NotADBError, apsw.CorruptError) as error:
        _log.debug("vectors cannot be read from %s: %s", place, error)
    if "vectors" in {name for _, name, _ in connection.execute("PRAGMA database_list")}:
        connection.execute("DETACH vectors")
    return False


COSINE = "CASE WHEN {0} IS NOT NULL THEN 1.0 - vec_distance_cosine(vec_int8({0}), vec_int8(?)) END"
"""The similarity of a vector to a given one, as SQL; NULL where there is none. SQLite may evaluate this
before any other condition of a query, so it guards itself."""


def text_digest(text: str) -> bytes:
    """Return the digest that identifies a text."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def quantize_int8(vector: Vector) -> bytes | None:
    """A vector in eight bits a number, filled up to whole octets of bits; None when it points nowhere."""
    try:
        length = math.hypot(*vector)
    except (TypeError, ValueError, OverflowError):  # no numbers
        return None
    if not length or not math.isfinite(length):
        return None
    largest = max(abs(number) for number in vector)
    scaled = [round(127 * number / largest) for number in vector]
    scaled += [0] * (_octets(len(vector)) * 8 - len(vector))
    return struct.pack(f"{len(scaled)}b", *scaled)


def quantize_binary(packed: bytes) -> bytes:
    """Reduce each number to one bit, its sign."""
    signs = "".join("1" if octet < 128 else "0" for octet in reversed(packed))
    return int(signs, 2).to_bytes(len(packed) // 8, "little")


def _octets(dimensions: int) -> int:
    return -(-dimensions // 8)
