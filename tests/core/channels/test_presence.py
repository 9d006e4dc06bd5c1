"""The presence of the platform in a channel: each start and stop is told once, and a kill at the next start."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from msgspec import Struct

from trunkline import Unavailable
from trunkline.api.channel import Channel, Gateway, OwnerNotice
from trunkline.api.testing import ScriptedRecords, wait_until
from trunkline.contracts.blocks.notice_preferences import NoticePreferences
from trunkline.contracts.channels.owner_notice import KeptNotice
from trunkline.workers.channels.account_lease import LeaseHolder
from trunkline.workers.channels.notice_outbox import NoticeOutbox, notice_key
from trunkline.workers.channels.presence import PRESENCE_KEY, Presence, PresenceRecord

pytestmark = pytest.mark.anyio

LEASE_KEY = f"lease.{PRESENCE_KEY}"
WANTED = NoticePreferences(kinds={"online": ("bell",)})


class Bell(Channel):
    """Keeps what it tells. While ``deaf`` it cannot reach its owner."""

    name = "bell"

    def __init__(self) -> None:
        self.notices: list[OwnerNotice] = []
        self.deaf = False

    @property
    def told(self) -> list[str]:
        """The texts."""
        return [notice.text for notice in self.notices]

    async def tell(self, notice: OwnerNotice) -> None:
        await anyio.lowlevel.checkpoint()
        if self.deaf:
            raise Unavailable("Nobody is there.")
        self.notices.append(notice)

    async def run(self, gateway: Gateway) -> None:
        await anyio.sleep_forever()


class Tower:
    """A channel with its records, which outlive every process."""

    def __init__(self, preferences: NoticePreferences | None = WANTED) -> None:
        self.bell = Bell()
        self.records = ScriptedRecords()
        self.preferences = preferences
        self.runs = 0
        self.asked = 0

    async def known(self) -> NoticePreferences | None:
        await anyio.lowlevel.checkpoint()
        self.asked += 1
        return self.preferences

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Presence]:
        """A worker. Left without a stop it ends as after a crash in a process that goes on."""
        self.runs += 1
        outbox = NoticeOutbox(self.bell, self.records, lambda _: self.records, self.known, retry_seconds=0.02)
        presence = Presence(f"run{self.runs}", self.records, outbox, lease_seconds=1.0)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outbox.run)
                tasks.start_soon(presence.run)
                while await self.state() != "serving":  # noqa: ASYNC110  the worker writes it
                    await anyio.sleep(0.01)
                yield presence
                tasks.cancel_scope.cancel()

    async def state(self) -> str:
        """Return the state that was noted."""
        record = await self.records.get(PRESENCE_KEY, PresenceRecord)
        return "" if record is None else record.value.state

    async def lose_lease(self) -> None:
        """Let the lease end, as when the bus was away for long, until the worker has it again."""
        await self.records.delete(LEASE_KEY)
        while await self.records.get(LEASE_KEY, LeaseHolder) is None:  # noqa: ASYNC110  the worker writes it
            await anyio.sleep(0.01)

    async def kill(self, ago: timedelta = timedelta()) -> None:
        """Leave what a killed process leaves, which was alive some time ago."""
        await self.records.put(PRESENCE_KEY, PresenceRecord(state="serving", at=datetime.now(UTC) - ago))


async def test_a_start_and_a_stop_are_told_once_each() -> None:
    """The stop is told before the worker ends."""
    tower = Tower()
    for number in (1, 2):
        async with tower.worker() as presence:
            await wait_until(lambda count=2 * number - 1: len(tower.bell.told) == count)  # type: ignore[misc]
            await presence.stop()
            assert len(tower.bell.told) == 2 * number
    assert [text.split(" since ")[0] for text in tower.bell.told] == [
        "Trunkline is online",
        "Trunkline is offline",
    ] * 2


async def test_a_worker_that_crashes_in_its_process_says_nothing() -> None:
    """Only the first of three workers tells."""
    tower = Tower()
    for _ in range(3):
        async with tower.worker():
            await wait_until(lambda: tower.bell.told)
        assert await tower.state() == "restarting"
    assert len(tower.bell.told) == 1


async def test_a_kill_is_told_at_the_next_start() -> None:
    """With the time at which the platform was last seen."""
    tower = Tower()
    await tower.kill(timedelta(hours=3))
    async with tower.worker():
        await wait_until(lambda: tower.bell.told)
    assert "was offline since" in tower.bell.told[0] and "without a clean stop" in tower.bell.told[0]


async def test_nothing_is_told_unless_the_owner_wants_it() -> None:
    """Channels that tell everything else do not tell this."""
    tower = Tower(NoticePreferences(channels=("bell",)))
    async with tower.worker() as presence:
        await presence.stop()
    assert tower.bell.told == []


async def test_a_stop_waits_for_no_service_that_is_away() -> None:
    """The next start tells what was not told; in the quiet time nothing is."""
    tower = Tower()
    async with tower.worker() as presence:
        await wait_until(lambda: len(tower.bell.told) == 1)
        tower.bell.deaf = True
        tower.preferences = NoticePreferences(
            kinds={"online": ("bell",)}, quiet="00:00-23:59", time_zone="UTC"
        )
        await presence.stop()
    assert len(tower.bell.told) == 1
    tower.bell.deaf = False
    tower.preferences = WANTED
    async with tower.worker():
        await wait_until(lambda: len(tower.bell.told) == 3)
    assert [text.split()[2] for text in tower.bell.told] == ["online", "offline", "online"]


async def test_a_stop_is_noted_though_the_lease_is_lost_meanwhile() -> None:
    """While the owner is told of it the worker does not serve the channel again."""
    tower = Tower()
    async with tower.worker() as presence:
        await wait_until(lambda: tower.bell.told)
        tower.bell.deaf = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(presence.stop)
            while await tower.state() != "stopped":  # noqa: ASYNC110  the stop writes it
                await anyio.sleep(0.01)
            await tower.records.delete(LEASE_KEY)
        assert await tower.state() == "stopped"


async def test_a_start_is_told_once_however_late_the_lease_is_lost() -> None:
    """After a week the notice is forgotten."""
    tower = Tower()
    async with tower.worker() as presence:
        await wait_until(lambda: tower.bell.told)
        await tower.records.delete(notice_key("online:run1"))
        await tower.lose_lease()
        while await tower.state() != "serving":  # noqa: ASYNC110  the worker writes it
            await anyio.sleep(0.01)
        await presence.stop()
    assert [text.split()[2] for text in tower.bell.told] == ["online", "offline"]


async def test_a_process_that_waited_begins_when_it_takes_over() -> None:
    """Not when it began to wait, which may be days ago."""
    tower = Tower()
    first = LeaseHolder(id="first", host="host", pid=1, since=datetime.now(UTC))
    await tower.records.put(LEASE_KEY, first)
    await tower.kill()
    async with tower.worker():
        gone = datetime.now(UTC)
        await tower.records.delete(LEASE_KEY)
        await wait_until(lambda: tower.bell.told)
    assert "without a clean stop" in tower.bell.told[0] and tower.bell.notices[0].at >= gone


async def test_a_start_is_told_though_preferences_come_late() -> None:
    """A gateway that starts slowly loses no notice."""
    tower = Tower(None)
    async with tower.worker() as presence:
        await wait_until(lambda: tower.asked > 3)
        tower.preferences = WANTED
        await wait_until(lambda: tower.bell.told)
        await presence.stop()
    assert len(tower.bell.told) == 2


@pytest.mark.parametrize(("moment", "state"), [(LEASE_KEY, ""), (PRESENCE_KEY, "stopped")])
async def test_a_process_stopped_while_it_begins_tells_no_start(moment: str, state: str) -> None:
    """What it has begun to serve is noted as stopped, so that the next start tells of no kill."""
    day = NoticePreferences(kinds={"online": ("bell",)}, quiet="00:00-23:59", time_zone="UTC")
    tower = Tower(day)
    async with anyio.create_task_group() as tasks:

        class SlowRecords(ScriptedRecords):
            """Somebody stops the process while it writes a record."""

            async def put(
                self, key: str, value: Struct, *, revision: int | None = None, ttl: float | None = None
            ) -> int:
                if key == moment and await self.get(key, type(value)) is None:
                    tasks.start_soon(presence.stop)
                    await anyio.wait_all_tasks_blocked()
                return await super().put(key, value, revision=revision, ttl=ttl)

        tower.records = SlowRecords()
        outbox = NoticeOutbox(tower.bell, tower.records, lambda _: tower.records, tower.known)
        presence = Presence("run", tower.records, outbox, lease_seconds=1.0)
        with anyio.fail_after(60):
            await presence.run()
    assert await tower.state() == state
    assert await tower.records.get(notice_key("online:run"), KeptNotice) is None
