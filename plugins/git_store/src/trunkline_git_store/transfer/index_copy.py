"""A copy of the search index while it is in use, for those who want it in an archive."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw


@contextmanager
def copied_index(index: Path) -> Iterator[Path | None]:
    """A copy that stays as it is for as long as the block lasts; None when there is no index that can be read."""
    with tempfile.TemporaryDirectory(prefix=".index-", dir=index.parent) as folder:
        copy = Path(folder) / index.name
        try:
            connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                connection.execute("VACUUM INTO ?", (str(copy),))
            finally:
                connection.close()
        except apsw.Error:
            yield None
        else:
            yield copy
