"""The sample store: memory as lines of one file. Put your own storage in its place."""

import os
from collections.abc import Iterable, Iterator
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

import trunkline
from trunkline.api.store import MemoryStore

from trunkline_sample.records import MemoryRecord
from trunkline_sample.store import RecordStore


class SampleStore(RecordStore):
    """Keeps one line for each change."""

    def load(self, root: Path) -> Iterator[MemoryRecord]:
        """Yield every record, oldest first."""
        self._file = (root / "sample.jsonl").open("a+b")
        flock(self._file, LOCK_EX | LOCK_NB)
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):  # cut short by a power failure, so never acknowledged
                break
            whole += len(line)
            yield MemoryRecord.decode(line)
        self._file.truncate(whole)

    def keep(self, record: MemoryRecord) -> None:
        """Append a record. It is on disk when this returns."""
        end = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(record.encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(end)
            raise

    def close(self) -> None:
        """Close the file, which releases its lock."""
        self._file.close()


@trunkline.hookimpl
def trunkline_memory_stores() -> Iterable[MemoryStore]:
    """Return the stores of this plugin."""
    return [SampleStore()]
