"""The sample store passes the contract suite."""

from pathlib import Path

import pytest
from trunkline import StorageError
from trunkline.api.store import Change, StoreContext
from trunkline.api.testing import StoreSuite

from trunkline_sample import SampleStore


@pytest.fixture
def anyio_backend() -> str:
    """Trunkline runs on asyncio."""
    return "asyncio"


class TestSample(StoreSuite):
    """The contract suite."""

    def store(self) -> SampleStore:
        """Return a store that is not open yet."""
        return SampleStore()


@pytest.mark.anyio
async def test_a_second_writer_on_a_root_is_refused(tmp_path: Path) -> None:
    """A root that is in use is refused."""
    first = SampleStore()
    await first.open(StoreContext(tmp_path, tmp_path))
    with pytest.raises(StorageError):
        await SampleStore().open(StoreContext(tmp_path, tmp_path))
    await first.aclose()


@pytest.mark.anyio
async def test_half_a_line_is_no_change(tmp_path: Path) -> None:
    """A line cut short by a power failure is skipped, and later lines are kept."""
    for number in range(3):
        store = SampleStore()
        await store.open(StoreContext(tmp_path, tmp_path))
        change = Change({f"{number}.md": b"text"}, actor="a", reason="")
        await store.change(change)
        await store.aclose()
        with (tmp_path / "sample.jsonl").open("ab") as file:
            file.write(b'{"version":')
    await store.open(StoreContext(tmp_path, tmp_path))
    assert (await store.read("1.md")).content == "text"
    await store.aclose()
