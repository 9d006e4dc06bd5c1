"""Memory in one SQLite file: easy to copy, easy to carry, every version in it."""

import sqlite3

import trunkline
from trunkline_onefile.records import MemoryRecord
from trunkline_onefile.store import RecordStore


class OneFile(RecordStore):
    def load(self, root):
        # No time-out: a process that has the file keeps it, so waiting is useless.
        self.file = sqlite3.connect(
            root / "memory.sqlite", timeout=0, check_same_thread=False, isolation_level=None
        )
        self.file.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.file.execute("PRAGMA synchronous = FULL")
        self.file.execute("CREATE TABLE IF NOT EXISTS records(number INTEGER PRIMARY KEY, record BLOB)")
        for (line,) in self.file.execute("SELECT record FROM records ORDER BY number"):
            yield MemoryRecord.decode(line)

    def keep(self, record):
        self.file.execute("INSERT INTO records(record) VALUES(?)", (record.encode(),))

    def close(self):
        self.file.close()


@trunkline.hookimpl
def trunkline_memory_stores():
    return [OneFile()]
