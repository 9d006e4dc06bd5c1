"""DueService: gives each due time of a schedule exactly one turn.

A due message is acknowledged after these steps. Each of them may be repeated by another gateway, or after a kill:

1. The due times up to now are *claimed* in the state of the schedule by compare-and-set, with the next due time. What
   is missed or skipped is decided here, once. A run by hand is a claim of its own.
2. Their messages are sent. The id of each turn follows from its due time, so a repeat is the same turn.
3. The runs are recorded, the claim is removed, and the next due time is armed.

A claim is completed before the next one is made. So whoever repeats a message sends it to the same conversation: that
of a queue is recorded with the runs of the claim that began it, and until then no other run can begin one.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

import anyio
import msgspec

from trunkline import RemoteFault, Unavailable
from trunkline.api.bus import Bus, BusError, Delivery, key_of
from trunkline.api.memory import utc_now
from trunkline.api.sandbox import KillSwitch
from trunkline.api.schedule import (
    SCHEDULE_CONSUMER,
    SCHEDULE_DUE,
    SCHEDULED_TURN_BUCKET,
    ScheduledTurn,
    ScheduleDue,
    ScheduleRun,
    ScheduleState,
)
from trunkline_pulse.armer import Armer
from trunkline_pulse.conditions import condition_holds
from trunkline_pulse.due_times import take_dues
from trunkline_pulse.run_recorder import RunRecorder
from trunkline_pulse.run_starter import RunStarter
from trunkline_pulse.schedule import Schedule
from trunkline_pulse.schedule_store import FoundSchedule, ScheduleStore
from trunkline_pulse.times import next_due

log = logging.getLogger(__name__)

MAX_RUNS = 20
"""The number of runs that a state keeps."""

WORKING = 16
"""The number of due messages that one gateway works on at once."""

RETRY_SECONDS, LATCHED_SECONDS = 1.0, 2.0

_REASONS = {"missed": "Nothing ran at that time.", "skipped": "The previous run had not ended."}


class DueService:
    """Processes due schedules while ``run`` runs. ``clock`` returns the time, in UTC."""

    def __init__(
        self,
        bus: Bus,
        store: ScheduleStore,
        armer: Armer,
        starter: RunStarter,
        recorder: RunRecorder,
        kill_switch: KillSwitch,
        zone: ZoneInfo,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._bus = bus
        self._store = store
        self._armer = armer
        self._starter = starter
        self._recorder = recorder
        self._kill_switch = kill_switch
        self._zone = zone
        self._clock = clock
        self._turns = bus.kv(SCHEDULED_TURN_BUCKET)

    async def run(self) -> None:
        """Process what is due, until cancelled. While the kill switch is engaged nothing is."""
        limiter = anyio.Semaphore(WORKING)
        async with (
            self._bus.pinned(SCHEDULE_CONSUMER, SCHEDULE_DUE) as deliveries,
            anyio.create_task_group() as tasks,
        ):
            async for delivery in deliveries:
                await limiter.acquire()
                tasks.start_soon(self._deliver, delivery, limiter)

    async def _deliver(self, delivery: Delivery[ScheduleDue], limiter: anyio.Semaphore) -> None:
        due = delivery.data
        try:
            if self._kill_switch.is_engaged:
                await delivery.nak(LATCHED_SECONDS)
                return
            await self.process(due)
            await delivery.ack()
        except (BusError, Unavailable) as error:
            log.info("the schedule %s of block %s waits: %s", due.name, due.block, error)
            await _hand_back(delivery)
        except Exception:  # one schedule that fails must not stop the others
            log.exception("the schedule %s of block %s failed; it is tried again", due.name, due.block)
            await _hand_back(delivery)
        finally:
            limiter.release()

    async def process(self, due: ScheduleDue) -> None:
        """Give a due time its turn, if it has none. Raises BusError and Unavailable; then call it again."""
        found = await self._store.find(due.block, due.name)
        entry = await self._store.entry(due.block, due.name)
        state = entry.value if entry is not None else None
        if found is None or entry is None or state is None or state.version != found.file.hash:
            await self._armer.sync([(due.block, due.name)])
            return None if found is None else await self.process(due)
        if found.schedule is None:
            return None
        if state.claimed:  # a gateway was killed
            await self._hand_over(state, found.schedule)
            return await self.process(due)
        if _is_open(state, due):
            claimed = _claim_by_hand(state, due) if due.by_hand else await self._claim(state, found)
            if not await self._store.replace(entry, claimed):
                return await self.process(due)
            state = await self._hand_over(claimed, found.schedule)
        await self._armer.arm(state, found.schedule)

    async def _claim(self, state: ScheduleState, found: FoundSchedule) -> ScheduleState:
        """Return the state with the due times that run now. Those that do not are recorded: the missed ones that are
        not made up for, and those that the previous run is in the way of. Whoever hands over cannot decide otherwise.
        """
        schedule, zone = found.schedule, self._zone
        if schedule is None or state.next_due is None:
            return state
        taken = take_dues(schedule, state.next_due, self._clock(), zone, key_of(state.block, state.name))
        late, wanted = list(taken.late), list(taken.to_run)
        lost = [due for due in late if due not in wanted]
        if wanted and schedule.condition and not _holds(schedule.condition, found):
            wanted = []
        runs = _passed_over(state.runs, "missed", lost)
        if wanted and schedule.overlap == "skip":
            free = 0 if await self._previous_runs(state.runs) else 1
            runs = _passed_over(runs, "skipped", wanted[free:], merge=not free)
            wanted = wanted[:free]
        return msgspec.structs.replace(
            state,
            claimed=tuple(wanted),
            next_due=next_due(schedule, taken.last, zone),
            runs=runs[-MAX_RUNS:],
        )

    async def _hand_over(self, state: ScheduleState, schedule: Schedule) -> ScheduleState:
        """Send the messages of the claimed due times, and record the runs. Return the new state."""
        if not state.claimed:
            return state
        runs: list[ScheduleRun] = []
        conversation = state.conversation
        for due in state.claimed:
            shared = msgspec.structs.replace(state, conversation=conversation)
            run = await self._start(shared, schedule, due, by_hand=state.claimed_by_hand)
            runs.append(run)
            if schedule.overlap == "queue":
                conversation = run.conversation or conversation

        def recorded(now: ScheduleState) -> ScheduleState:
            if (now.claimed, now.claimed_by_hand) != (state.claimed, state.claimed_by_hand):
                return now
            return msgspec.structs.replace(
                now,
                claimed=(),
                claimed_by_hand=False,
                runs=(*now.runs, *runs)[-MAX_RUNS:],
                conversation=conversation,
            )

        changed = await self._store.change(state.block, state.name, recorded)
        await self._recorder.settle_started(runs)
        return changed or state

    async def _previous_runs(self, runs: tuple[ScheduleRun, ...]) -> bool:
        """Report whether a run has not ended. A later one that was run by hand may have."""
        for run in runs:
            if run.turn and run.outcome == "started" and await self._starter.is_running(run.turn):
                return True
        return False

    async def _start(
        self, state: ScheduleState, schedule: Schedule, due: datetime, *, by_hand: bool
    ) -> ScheduleRun:
        """Send the message of a due time, and note to which schedule its turn belongs."""
        try:
            accepted = await self._starter.start(state, schedule, due, by_hand=by_hand)
        except RemoteFault as fault:
            if fault.code in ("engine_unavailable", "storage_failure"):
                raise Unavailable(fault.message) from fault
            return ScheduleRun(due_at=due, outcome="failed", ended_at=self._clock(), detail=fault.message)
        belongs = ScheduledTurn(block=state.block, name=state.name, due_at=due)
        await self._turns.put(accepted.turn, belongs)
        return ScheduleRun(
            due_at=due, outcome="started", turn=accepted.turn, conversation=accepted.conversation
        )


def _is_open(state: ScheduleState, due: ScheduleDue) -> bool:
    """Report whether a due time has no run yet."""
    if due.by_hand:
        return all(run.due_at != due.due_at for run in state.runs)
    return state.next_due == due.due_at


def _claim_by_hand(state: ScheduleState, due: ScheduleDue) -> ScheduleState:
    return msgspec.structs.replace(state, claimed=(due.due_at,), claimed_by_hand=True)


def _passed_over(
    runs: tuple[ScheduleRun, ...],
    outcome: Literal["missed", "skipped"],
    dues: Sequence[datetime],
    *,
    merge: bool = True,
) -> tuple[ScheduleRun, ...]:
    """Return the runs with due times that have no turn. Those that follow each other are one entry, so that a run that
    lasts long is not forgotten because of those that it is in the way of. ``merge`` is false where a time before these
    runs, which is not recorded yet."""
    if not dues:
        return runs
    entry = ScheduleRun(due_at=dues[-1], outcome=outcome, count=len(dues), detail=_REASONS[outcome])
    if merge and runs and runs[-1].outcome == outcome:
        return (*runs[:-1], msgspec.structs.replace(entry, count=runs[-1].count + entry.count))
    return (*runs, entry)


def _holds(condition: str, found: FoundSchedule) -> bool:
    try:
        return condition_holds(condition)
    except (OSError, KeyError, ValueError) as error:
        log.warning("%s: the condition cannot be checked here: %s", found.file.path, error)
        return False


async def _hand_back(delivery: Delivery[ScheduleDue]) -> None:
    try:
        await delivery.nak(RETRY_SECONDS)
    except BusError:
        return  # the server delivers it again by itself
