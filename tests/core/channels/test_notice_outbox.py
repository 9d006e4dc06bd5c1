"""The notices of a channel: told once, at their time, by the first channel that can, whatever process is killed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from trunkline import Unavailable
from trunkline.api.channel import Channel, Gateway, OwnerNotice
from trunkline.api.testing import ScriptedRecords, wait_until
from trunkline.contracts.blocks.notice_preferences import NoticePreferences
from trunkline.workers.channels.notice_outbox import NoticeOutbox

pytestmark = pytest.mark.anyio


class Crash(Exception):
    """The process ends here."""


class Bell(Channel):
    """A channel that keeps what it tells. While ``deaf`` it cannot reach its owner."""

    def __init__(self, name: str, *, remembers: bool = False) -> None:
        self.name = name
        self.remembers_notices = remembers
        self.told: list[str] = []
        self.deaf = False
        self.crashes = False

    async def tell(self, notice: OwnerNotice) -> None:
        await anyio.lowlevel.checkpoint()
        if self.deaf:
            raise Unavailable("Nobody is there.")
        if not (self.remembers_notices and notice.text in self.told):
            self.told.append(notice.text)
        if self.crashes:
            self.crashes = False
            raise BaseExceptionGroup("killed", [KeyboardInterrupt()])

    async def run(self, gateway: Gateway) -> None:
        await anyio.sleep_forever()


@dataclass
class House:
    """The channels of an owner, with their records."""

    preferences: NoticePreferences = field(default_factory=NoticePreferences)
    records: dict[str, ScriptedRecords] = field(default_factory=dict)

    def of(self, channel: str) -> ScriptedRecords:
        return self.records.setdefault(channel, ScriptedRecords())

    async def known(self) -> NoticePreferences:
        await anyio.lowlevel.checkpoint()
        return self.preferences

    def outbox(self, bell: Bell) -> NoticeOutbox:
        return NoticeOutbox(bell, self.of(bell.name), self.of, self.known, retry_seconds=0.02)

    @asynccontextmanager
    async def running(self, *bells: Bell) -> AsyncIterator[list[NoticeOutbox]]:
        """The outboxes of these channels run."""
        outboxes = [self.outbox(bell) for bell in bells]
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for outbox in outboxes:
                    tasks.start_soon(outbox.run)
                yield outboxes
                tasks.cancel_scope.cancel()


def notice(text: str, *, ago: float = 0.0) -> OwnerNotice:
    """A notice that happened some seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    return OwnerNotice(id=f"id of {text}", kind="message", text=text, at=at)


async def test_a_notice_is_told_once_however_often_it_is_put() -> None:
    """Repeats and restarts change nothing."""
    house, bell = House(), Bell("bell")
    for number in range(2):
        async with house.running(bell) as (outbox,):
            for _ in range(2):
                await outbox.put(notice("one"))
            await outbox.put(notice(f"end of {number}"))
            await wait_until(lambda count=2 + number: len(bell.told) == count)  # type: ignore[misc]
    assert bell.told.count("one") == 1


async def test_the_next_channel_tells_what_the_first_cannot() -> None:
    """It waits for its time. What the first channel told, the second does not tell."""
    house = House(NoticePreferences(channels=("first", "second"), escalate_minutes=0.001))
    first, second, other = Bell("first"), Bell("second"), Bell("other")
    async with house.running(first, second, other) as outboxes:
        for outbox in outboxes:
            await outbox.put(notice("one"))
        await wait_until(lambda: first.told == ["one"])
        first.deaf = True
        for outbox in outboxes:
            await outbox.put(notice("two"))
        await wait_until(lambda: second.told == ["two"])
    assert first.told == ["one"] and second.told == ["two"] and other.told == []


async def test_quiet_hours_hold_a_notice_back_over_a_restart() -> None:
    """While it is quiet nothing is told; afterwards the next process tells it."""
    day = "00:00-23:59"
    house, bell = House(NoticePreferences(quiet=day, time_zone="UTC")), Bell("bell")
    noon = datetime.now(UTC).replace(hour=12)
    held = OwnerNotice(id="1", kind="message", text="held", at=noon - timedelta(days=1))
    waits = OwnerNotice(id="2", kind="message", text="waits", at=datetime.now(UTC) + timedelta(days=2))
    async with house.running(bell) as (outbox,):
        await outbox.put(waits)
        await outbox.put(held)
        await wait_until(lambda: bell.told == ["held"])
    house.preferences = NoticePreferences(quiet=day, time_zone="UTC", urgent=("message",))
    async with house.running(bell) as (outbox,):
        await outbox.put(notice("urgent"))
        await wait_until(lambda: "urgent" in bell.told)
    assert bell.told == ["held", "urgent"]


@pytest.mark.parametrize("write", [1, 2, 3])
async def test_a_crash_before_a_write_tells_once(write: int) -> None:
    """A channel that remembers what it told is told again by the next process, and shows the notice once."""
    house, bell, count = House(), Bell("bell", remembers=True), 0

    def crash(key: str) -> None:
        nonlocal count
        count += 1
        if count == write:
            raise Crash

    house.of("bell").before_write = crash
    while count < write:
        with pytest.RaisesGroup(Crash, flatten_subgroups=True, allow_unwrapped=True):
            async with house.running(bell) as (outbox,):
                await outbox.put(notice("one"))
                await anyio.sleep_forever()
    async with house.running(bell) as (outbox,):
        await outbox.put(notice("one"))
        await wait_until(lambda: bell.told == ["one"])
        await outbox.put(notice("two"))
        await wait_until(lambda: bell.told == ["one", "two"])


async def test_an_interrupted_telling_is_not_repeated() -> None:
    """A channel that cannot find out what a killed process told loses a notice rather than repeating it."""
    house, bell = House(), Bell("bell")
    bell.crashes = True
    with pytest.raises(BaseExceptionGroup):
        async with house.running(bell) as (outbox,):
            await outbox.put(notice("one"))
            await anyio.sleep_forever()
    async with house.running(bell) as (outbox,):
        await outbox.put(notice("two"))
        await wait_until(lambda: bell.told == ["one", "two"])
