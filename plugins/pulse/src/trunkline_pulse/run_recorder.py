"""RunRecorder: records the end of a schedule's turn in its state, and tells the owner of the result."""

import logging
from collections.abc import Iterable, Sequence

import msgspec

from trunkline import RemoteFault, Unavailable
from trunkline.api.bus import Bus, BusError
from trunkline.api.channel import NoticeRound, TellOwner
from trunkline.api.gateway import GatewayClient, TurnView
from trunkline.api.memory import utc_now
from trunkline.api.schedule import (
    SCHEDULED_TURN_BUCKET,
    SCHEDULED_TURN_CONSUMER,
    RunOutcome,
    ScheduledTurn,
    ScheduleRun,
    ScheduleState,
)
from trunkline.api.turn import JOURNAL, TURN_FACT
from trunkline_pulse.run_starter import ALL_QUIET
from trunkline_pulse.schedule import Schedule
from trunkline_pulse.schedule_store import FoundSchedule, ScheduleStore

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
MAX_TOLD = 4_000
"""The largest number of characters of an answer that the owner is sent."""


class RunRecorder:
    """Follows the turns of schedules while ``run`` runs. ``channels`` are those that may tell the owner."""

    def __init__(
        self, bus: Bus, store: ScheduleStore, client: GatewayClient, channels: Sequence[str]
    ) -> None:
        self._bus = bus
        self._store = store
        self._client = client
        self._channels = channels
        self._turns = bus.kv(SCHEDULED_TURN_BUCKET)

    async def run(self) -> None:
        """Record the ends of turns, until cancelled."""
        async with self._bus.pinned(SCHEDULED_TURN_CONSUMER, TURN_FACT) as deliveries:
            async for delivery in deliveries:
                try:
                    await self._settle(delivery.data.turn)
                    await delivery.ack()
                except (BusError, Unavailable, RemoteFault) as error:
                    log.info("the end of turn %s is recorded later: %s", delivery.data.turn, error)
                    await delivery.nak(RETRY_SECONDS)
                except Exception:  # one run that fails must not stop the records of all others
                    log.exception("the end of turn %s cannot be recorded", delivery.data.turn)
                    await delivery.ack()

    async def settle_started(self, runs: Iterable[ScheduleRun]) -> None:
        """Record the ends of those runs that have ended before it was noted that they belong to a schedule. A turn that
        has not begun is not looked up: that would read all messages that wait, for each of them."""
        for run in runs:
            if run.turn and await self._bus.last(JOURNAL, conversation=run.conversation, turn=run.turn):
                await self._settle(run.turn)

    async def report_problem(self, source: FoundSchedule) -> None:
        """Tell the owner of a file that must be corrected. Nothing is told twice."""
        text = f"The schedule {source.name} does not run until its file is corrected. {source.problem}"
        await self._tell(source.block, f"schedule-{source.file.hash}", text, "")

    async def _settle(self, turn: str) -> None:
        """Record the end of a turn that has ended and belongs to a schedule."""
        entry = await self._turns.get(turn)
        if entry is None or entry.value is None:
            return
        place = entry.value
        try:
            view = await self._client.turn(turn)
        except RemoteFault as fault:
            if fault.code != "not_found":
                raise
            return
        if view.status != "finished":
            return
        found = await self._store.find(place.block, place.name)
        schedule = found.schedule if found is not None else None
        answer = await self._answer(view)
        outcome = _outcome(view, schedule, answer)
        if schedule is not None and outcome == "quiet":
            await self._client.mark_conversation(view.conversation, archived=True)
        elif schedule is not None and schedule.is_announced:
            text = answer or f"The run ended without an answer: {view.code or view.reason}."
            await self._tell(place.block, turn, f"{place.name}: {text[:MAX_TOLD]}", schedule.channel)
        if await self._record(place, turn, outcome, str(view.code or "")):
            await self._turns.delete(turn)

    async def _record(self, place: ScheduledTurn, turn: str, outcome: RunOutcome, detail: str) -> bool:
        """Record the end of a run. Return whether the schedule knows the run: the turn may end before its start is
        recorded, and is settled again after that."""

        def ended(state: ScheduleState) -> ScheduleState:
            runs = tuple(
                msgspec.structs.replace(run, outcome=outcome, ended_at=utc_now(), detail=detail)
                if run.turn == turn and run.outcome == "started"
                else run
                for run in state.runs
            )
            return msgspec.structs.replace(state, runs=runs)

        state = await self._store.change(place.block, place.name, ended)
        return state is None or any(run.turn == turn for run in state.runs)

    async def _answer(self, view: TurnView) -> str:
        """Return the text of a turn's answer; "" if it has none."""
        if view.message_id is None:
            return ""
        messages = (await self._client.conversation(view.conversation)).messages
        return next((message.content for message in messages if message.id == view.message_id), "")

    async def _tell(self, block: str, notice: str, text: str, channel: str) -> None:
        """Hand a text to a channel, or to all of them, each of which decides by the owner's preferences."""
        message = TellOwner(block=block, text=text, notice=notice, at=utc_now())
        left = await NoticeRound(self._bus, (channel,) if channel else self._channels).hand(message)
        if left:
            log.warning("these channels do not tell the owner of a schedule: %s", ", ".join(left))


def _outcome(view: TurnView, schedule: Schedule | None, answer: str) -> RunOutcome:
    if view.code is not None or view.reason in ("error", "cancelled", "stopped"):
        return "failed"
    heartbeat = schedule is not None and schedule.type == "heartbeat"
    return "quiet" if heartbeat and answer.strip(" .!*\n").upper() == ALL_QUIET else "finished"
