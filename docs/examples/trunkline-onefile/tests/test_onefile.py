"""The store keeps the contract of stores, and reports an unusable file."""

import pytest

from trunkline import StorageError
from trunkline.api.store import Change, StoreContext
from trunkline.api.testing import StoreSuite
from trunkline_onefile import OneFile


@pytest.fixture
def anyio_backend():
    return "asyncio"


class TestOneFile(StoreSuite):
    """Every promise of a memory store."""

    def store(self):
        return OneFile()


@pytest.mark.anyio
async def test_a_second_writer_on_a_root_is_refused(tmp_path):
    """A root that is in use is refused, and its owner continues."""
    first, second = OneFile(), OneFile()
    await first.open(StoreContext(tmp_path, tmp_path))
    with pytest.raises(StorageError, match="locked"):
        await second.open(StoreContext(tmp_path, tmp_path))
    assert await first.change(Change({"a.md": b"still here"}, actor="a", reason=""))
    await first.aclose()


@pytest.mark.anyio
async def test_a_file_that_is_no_database_stops_the_start(tmp_path):
    """Memory never starts over a file that cannot be read."""
    (tmp_path / "memory.sqlite").write_text("this is no database " * 100)
    with pytest.raises(StorageError, match="not a database"):
        await OneFile().open(StoreContext(tmp_path, tmp_path))
    assert (tmp_path / "memory.sqlite").read_text().startswith("this is no database")
