"""The cache that is valid until memory publishes a change."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.cache import MemoryCache
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.contracts.workers.subjects import DEAD_LETTER_SUBJECT
from trunkline_bus import Bus, BusError, BusSettings, EmbeddedServer, ServerSettings, connect

pytestmark = pytest.mark.anyio


class Asked:
    """Counts questions; the answer to each name is its number."""

    def __init__(self) -> None:
        self.count = 0
        self.hold = anyio.Event()
        self.hold.set()
        self.error: BusError | None = None

    async def __call__(self, name: str) -> int | None:
        self.count += 1
        number = self.count
        await self.hold.wait()
        if self.error is not None:
            raise self.error
        return number if name != "absent" else None


@asynccontextmanager
async def known(
    folder: Path, asked: Asked, fresh_for: float = 60.0, stale_for: float = 0.0
) -> AsyncIterator[tuple[Bus, MemoryCache[int | None]]]:
    async with EmbeddedServer(ServerSettings(store_dir=folder)) as server:
        settings = BusSettings(
            url=server.url, user=server.user, password=server.password, dead_letters=DEAD_LETTER_SUBJECT
        )
        async with connect(settings) as bus:
            found = MemoryCache[int | None](
                bus,
                asked,
                counts=lambda path: path.endswith(".toml"),
                fresh_for=fresh_for,
                stale_for=stale_for,
            )
            await found.open()
            yield bus, found
            found.close()


async def tell(bus: Bus, path: str) -> None:
    await bus.publish(MEMORY_CHANGED, MemoryChanged(paths=(path,), version="1"), part="files")


async def test_an_answer_is_cached_and_an_absence_is_not(tmp_path: Path) -> None:
    """A name is requested once; a missing one is requested again, so that it is found once it exists."""
    asked = Asked()
    async with known(tmp_path, asked) as (_, found):
        assert [await found.get("a"), await found.get("a"), await found.get("b")] == [1, 1, 2]
        assert [await found.get("absent"), await found.get("absent")] == [None, None] and asked.count == 4


async def test_a_cached_answer_expires(tmp_path: Path) -> None:
    """An expired answer is requested again, even without a published change."""
    asked = Asked()
    async with known(tmp_path, asked, fresh_for=0.0) as (_, found):
        assert [await found.get("a"), await found.get("a")] == [1, 2]


async def test_a_published_change_invalidates_only_the_changed_file(tmp_path: Path) -> None:
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


async def test_an_answer_overtaken_by_a_change_is_not_cached(tmp_path: Path) -> None:
    """A reader from before the change gets the old answer, and a later reader requests a new one."""
    asked = Asked()
    async with known(tmp_path, asked) as (_, found):
        asked.hold = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(found.get, "a")
            await anyio.wait_all_tasks_blocked()
            found.clear()
            asked.hold.set()
        assert await found.get("a") == 2


async def test_concurrent_readers_share_one_read(tmp_path: Path) -> None:
    """For any number of concurrent requests of a name, it is read once; a request after a change does not join that
    read."""
    asked, answers = Asked(), list[int | None]()
    async with known(tmp_path, asked) as (_, found):

        async def ask() -> None:
            answers.append(await found.get("a"))

        asked.hold = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            found.clear()
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            asked.hold.set()
        assert sorted(answer or 0 for answer in answers) == [1, 1, 1, 1, 1, 2]


async def test_a_cancelled_read_does_not_fail_waiting_readers(tmp_path: Path) -> None:
    """A reader that waited for another caller's cancelled read reads for itself."""
    asked, answers = Asked(), list[int | None]()
    async with known(tmp_path, asked) as (_, found):

        async def ask() -> None:
            answers.append(await found.get("a"))

        asked.hold = anyio.Event()
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as reader:
            reader.start_soon(found.get, "a")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            reader.cancel_scope.cancel()
            asked.hold.set()
        assert answers == [2]


async def test_a_name_that_was_absent_is_not_shared(tmp_path: Path) -> None:
    """A reader that waited for a read without a result reads for itself, and finds a file made meanwhile."""
    asked = Asked()
    async with known(tmp_path, asked) as (_, found):
        asked.hold = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(found.get, "absent")
            tasks.start_soon(found.get, "absent")
            await anyio.wait_all_tasks_blocked()
            asked.hold.set()
        assert asked.count == 2


async def test_a_stale_answer_counts_while_memory_is_away(tmp_path: Path) -> None:
    """With ``stale_for``, the cached answer is used while memory does not answer, and not once it answers again."""
    asked = Asked()
    async with known(tmp_path, asked, stale_for=300.0) as (_, found):
        assert await found.get("a") == 1
        found.clear()
        asked.error = BusError("away")
        assert await found.get("a") == 1
        with pytest.raises(BusError):
            await found.get("b")
        asked.error = None
        assert await found.get("a") == 4


async def test_a_changed_answer_does_not_outlast_memory_s_absence(tmp_path: Path) -> None:
    """Without ``stale_for`` an answer that a change overtook is forgotten."""
    asked = Asked()
    async with known(tmp_path, asked) as (_, found):
        assert await found.get("a") == 1
        found.clear()
        asked.error = BusError("away")
        with pytest.raises(BusError):
            await found.get("a")
