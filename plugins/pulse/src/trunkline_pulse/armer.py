"""Armer: keeps the state of each schedule, and the timer that the server fires, in step with the schedule's file.

Every gateway has one. They need no leader: each derives the same state from the same file, and changes it by
compare-and-set. A timer that is armed twice replaces itself. One that fires twice is recognised by the state.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from trunkline import RemoteFault, Unavailable
from trunkline.api.bus import Bus, BusError, key_of
from trunkline.api.memory import utc_now
from trunkline.api.schedule import SCHEDULE_DUE, SCHEDULE_TIMER, ScheduleDue, ScheduleState
from trunkline_pulse.schedule import Schedule
from trunkline_pulse.schedule_store import FoundSchedule, Place, ScheduleStore
from trunkline_pulse.times import jittered, next_due

log = logging.getLogger(__name__)

FIRST_BEAT = timedelta(seconds=60)
"""An interval that begins at most so long before its file was saved has its first due time at its beginning."""

OUTAGE = timedelta(hours=1)
"""A schedule that is seen for the first time so long after its file was saved counts from now: it came with a restored
block or from another home, and what it would have done before is no outage of this platform.
"""

Report = Callable[[FoundSchedule], Awaitable[None]]
"""Tells the owner of a file that must be corrected."""


class Armer:
    """Arms and disarms schedules. ``zone`` is the time zone of those that name none. Methods raise BusError."""

    def __init__(self, bus: Bus, store: ScheduleStore, zone: ZoneInfo, report: Report) -> None:
        self._bus = bus
        self._store = store
        self._zone = zone
        self._report = report

    async def sync_all(self) -> None:
        """Arm every schedule that memory has, and forget the others."""
        states = await self._store.states()
        armed = {
            (stored.keys["block"], stored.keys["schedule"])
            async for stored in self._bus.history(SCHEDULE_TIMER)
        }
        places = [place for block in await self._store.blocks() for place in await self._store.places(block)]
        for found in await self._store.read(places):
            state = states.get((found.block, found.name))
            if state is None or state.version != found.file.hash:
                await self._sync_safely(found)
            elif (found.block, found.name) not in armed and found.schedule is not None:
                await self.arm(state, found.schedule)
        for block, name in (states.keys() | armed) - set(places):
            await self._forget(block, name)

    async def sync(self, places: Iterable[Place]) -> None:
        """Arm these schedules anew where their files have changed."""
        wanted = set(places)
        for found in await self._store.read(wanted):
            wanted.discard((found.block, found.name))
            await self._sync_safely(found)
        for block, name in wanted:
            await self._forget(block, name)

    async def arm(self, state: ScheduleState, schedule: Schedule) -> None:
        """Let the server report the next due time of a state. Does nothing if there is none.

        Whoever changes the state arms after the change. So a state that is still the same after this arming is armed
        right, and one that is not is armed anew: otherwise the timer of an older file could replace that of a newer.
        """
        if state.next_due is None:
            return
        block, name = state.block, state.name
        due = ScheduleDue(block=block, name=name, due_at=state.next_due)
        at = jittered(schedule, key_of(block, name), state.next_due)
        await self._bus.schedule(SCHEDULE_TIMER, SCHEDULE_DUE, due, at=at, block=block, schedule=name)
        now = await self._store.state(block, name)
        if now is not None and (now.version, now.next_due) != (state.version, state.next_due):
            await self.sync([(block, name)])

    async def _sync_safely(self, found: FoundSchedule) -> None:
        """Arm a schedule anew. One that fails unexpectedly must not keep the others, or the gateway, from working."""
        try:
            await self._sync(found)
        except (BusError, RemoteFault, Unavailable):
            raise
        except Exception:
            log.exception("the schedule %s of block %s cannot be armed", found.name, found.block)

    async def _sync(self, found: FoundSchedule) -> None:
        schedule = found.schedule
        while True:
            entry = await self._store.entry(found.block, found.name)
            old = entry.value if entry is not None else None
            if old is not None and old.version == found.file.hash:
                state = old
                break
            state = self._state(found, old)
            done = await (self._store.replace(entry, state) if entry and old else self._store.create(state))
            if done:
                break
        if state.next_due is None or schedule is None:
            await self._disarm(found.block, found.name)
        else:
            await self.arm(state, schedule)
        if schedule is not None and state.claimed:
            await self._complete(state)
        if found.problem:
            await self._report(found)

    async def _complete(self, state: ScheduleState) -> None:
        """Let a gateway complete a claim. Its own message may have come while the file was wrong."""
        block, name = state.block, state.name
        due = ScheduleDue(block=block, name=name, due_at=state.claimed[0])
        await self._bus.append(SCHEDULE_DUE, due, block=block, schedule=name)

    def _state(self, found: FoundSchedule, old: ScheduleState | None) -> ScheduleState:
        """Return the state of a new or changed file. It keeps what is known of former runs."""
        base = old or ScheduleState(block=found.block, name=found.name, version="")
        schedule = found.schedule
        due = None
        if schedule is not None and schedule.enabled:
            seen = None if old is not None else utc_now()
            saved = first_moment(schedule, found.file.modified_at, seen, self._zone)
            after = max([saved, *(run.due_at for run in base.runs), *base.claimed])  # these have their runs
            if base.next_due is not None and base.next_due <= after:
                after = base.next_due - timedelta(
                    microseconds=1
                )  # it was due before the change, and has no run yet
            due = next_due(schedule, after, self._zone)
        shares = schedule is not None and schedule.overlap == "queue"
        return msgspec.structs.replace(
            base,
            version=found.file.hash,
            next_due=due,
            problem=found.problem,
            conversation=base.conversation if shares else "",
        )

    async def _forget(self, block: str, name: str) -> None:
        await self._disarm(block, name)
        await self._store.forget(block, name)
        log.info("the schedule %s of block %s was removed", name, block)

    async def _disarm(self, block: str, name: str) -> None:
        sequence = await self._bus.last_seq(SCHEDULE_TIMER, block=block, schedule=name)
        if sequence:
            await self._bus.delete(SCHEDULE_TIMER, sequence, missing_ok=True)


def first_moment(schedule: Schedule, saved: datetime, seen: datetime | None, zone: ZoneInfo) -> datetime:
    """Return the instant after which a schedule that was saved then is due. ``seen`` is the time at which it is seen
    for the first time, None if it is known already.
    """
    if seen is not None and seen - saved > OUTAGE:
        return seen
    if schedule.every and schedule.start is not None:
        start = schedule.instant(schedule.start, zone)
        if start <= saved <= start + FIRST_BEAT:
            return start - timedelta(microseconds=1)
    return saved
