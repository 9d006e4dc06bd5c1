"""What is known until memory tells of a change."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.cache import MemoryCache
from trunkline.contracts.memory.messages import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.contracts.workers.subjects import DEAD_LETTER_SUBJECT
from trunkline_bus import Bus, BusSettings, EmbeddedServer, ServerSettings, connect

pytestmark = pytest.mark.anyio


class Asked:
    """Counts questions; the answer to each name is its number."""

    def __init__(self) -> None:
        self.count = 0
        self.hold = anyio.Event()
        self.hold.set()

    async def __call__(self, name: str) -> int | None:
        self.count += 1
        number = self.count
        await self.hold.wait()
        return number if name != "absent" else None


@asynccontextmanager
async def known(
    folder: Path, asked: Asked, fresh_for: float = 60.0
) -> AsyncIterator[tuple[Bus, MemoryCache[int | None]]]:
    async with EmbeddedServer(ServerSettings(store_dir=folder)) as server:
        settings = BusSettings(
            url=server.url, user=server.user, password=server.password, dead_letters=DEAD_LETTER_SUBJECT
        )
        async with connect(settings) as bus:
            found = MemoryCache[int | None](
                bus, asked, counts=lambda path: path.endswith(".toml"), fresh_for=fresh_for
            )
            await found.open()
            yield bus, found
            found.close()


async def tell(bus: Bus, path: str) -> None:
    await bus.publish(MEMORY_CHANGED, MemoryChanged(paths=(path,), version="1"), part="files")


async def test_an_answer_is_kept_and_one_that_is_none_is_not(tmp_path: Path) -> None:
    """A name is asked for once; what is not there is asked for again, so that it is found when it comes."""
    asked = Asked()
    async with known(tmp_path, asked) as (_, found):
        assert [await found.get("a"), await found.get("a"), await found.get("b")] == [1, 1, 2]
        assert [await found.get("absent"), await found.get("absent")] == [None, None] and asked.count == 4


async def test_an_answer_grows_old(tmp_path: Path) -> None:
    """After its time it is asked for again, whether or not anybody told of a change."""
    asked = Asked()
    async with known(tmp_path, asked, fresh_for=0.0) as (_, found):
        assert [await found.get("a"), await found.get("a")] == [1, 2]


async def test_a_told_change_counts_at_once_and_another_file_s_does_not(tmp_path: Path) -> None:
    """Memory's word about a file that counts makes the next question a new one."""
    asked = Asked()
    async with known(tmp_path, asked) as (bus, found):
        await found.get("a")
        await tell(bus, "notes/a.md")
        await tell(bus, "preferences.toml")
        with anyio.fail_after(60):
            while True:
                if await found.get("a") != 1:
                    break
                await anyio.sleep(0.01)
        assert asked.count == 2


async def test_an_answer_that_a_change_overtook_is_not_kept(tmp_path: Path) -> None:
    """Who asked before the change is answered, and whoever asks after it asks anew."""
    asked = Asked()
    async with known(tmp_path, asked) as (_, found):
        asked.hold = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(found.get, "a")
            await anyio.wait_all_tasks_blocked()
            found.clear()
            asked.hold.set()
        assert await found.get("a") == 2
