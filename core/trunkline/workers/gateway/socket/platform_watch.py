"""Watches the bus for what the platform's feeds show. Each source goes on when the bus is back after an outage."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import anyio
import msgspec

from trunkline.contracts.approvals.client import watch_approvals
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.blocks.messages import BlockStatus
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, is_block_file
from trunkline.contracts.conversations.paths import parse_conversation_path
from trunkline.contracts.costs.client import watch_budget_events
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.contracts.turns.feed_events import is_finished
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.messages import FinishReason
from trunkline.contracts.turns.subjects import JOURNAL, TURN_FACT
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.panic import Panic, PanicRelease
from trunkline.contracts.workers.subjects import PANIC, PANIC_RELEASE, PULSE_BUCKET, WORKER_BUCKET
from trunkline.home.kill_switch import KillSwitch
from trunkline.workers.gateway.blocks import merge_pulses
from trunkline.workers.gateway.services import Services
from trunkline.workers.gateway.socket.event_envelopes import (
    ApprovalRequestEnvelope,
    ApprovalRequestPayload,
    ApprovalSettledEnvelope,
    ApprovalSettledPayload,
)
from trunkline.workers.gateway.socket.platform_feed import EVERY_BLOCK, EVERYBODY, PLATFORM, PlatformFeed
from trunkline.workers.gateway.socket.status_envelopes import (
    BankruptEnvelope,
    BankruptPayload,
    BlockActivity,
    BudgetReset,
    ConversationStatus,
    PanicEnvelope,
    PanicPayload,
    StatusEnvelope,
    TurnState,
    TurnStatus,
    WorkerStatus,
)
from trunkline.workers.gateway.socket.turn_envelopes import TurnPlace
from trunkline_bus import BusError, ReceivedMessage, Refusal

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0

POLL_SECONDS = 1.0
"""Seconds between two looks at what workers report. They report every second."""


class PlatformWatch:
    """Fills two feeds: ``alerts`` with budgets and panic, ``feed`` with everything else. ``ready`` is set once ``feed``
    has the present states of turns and approvals.
    """

    def __init__(self, services: Services, kill_switch: KillSwitch) -> None:
        self.feed, self.alerts = PlatformFeed(), PlatformFeed()
        self.ready = anyio.Event()
        self._services = services
        self._bus = services.bus
        self._kill_switch = kill_switch
        self._changed_conversations: dict[str, str] = {}
        self._some_conversation = anyio.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        async with anyio.create_task_group() as tasks:
            for source in (
                self._watch_turns, self._watch_approvals, self._watch_budgets, self._watch_memory,
                self._watch_conversations, self._watch_blocks, self._watch_workers, self._watch_panic,
            ):  # fmt: skip
                tasks.start_soon(_repeat, source)

    # Turns -------------------------------------------------------------------------------------------------------

    async def _watch_turns(self) -> None:
        gaps = anyio.Event()

        async def note_gap() -> None:
            gaps.set()

        undo = self._bus.on_reconnect(note_gap)
        try:
            async with self._bus.listen(TURN_FACT) as facts:
                await self._load_turns()
                self.ready.set()
                async for fact in facts:
                    if fact.gap or gaps.is_set():
                        gaps = anyio.Event()
                        await self._load_turns()
                    place = TurnPlace(fact.data.block, fact.data.conversation, fact.data.turn)
                    lane = fact.data.lane or "interactive"
                    self._tell_turn(place, _STATUSES[fact.data.fact], fact.data.reason, lane)
                    if fact.data.fact == "started":
                        self._note_conversation(place.block, place.conversation)
        finally:
            undo()

    async def _load_turns(self) -> None:
        """Tell which turns have not ended, and that all others have."""
        found: dict[str, tuple[TurnPlace, TurnState]] = {}
        for request in await self._services.turns.queued_requests():
            place = TurnPlace(request.block, request.conversation, request.turn)
            last = await self._bus.last(JOURNAL, conversation=request.conversation)
            if last is None or last.data.turn != request.turn:
                found[request.turn] = place, "queued"
            elif not is_finished(last.data):
                found[request.turn] = place, "running"
        async for stored in self._bus.history(APPROVAL, after=0):
            one = stored.data
            if one.settled is None:
                found[one.turn] = TurnPlace(one.block, one.conversation, one.turn), "parked"
        for place, status in found.values():
            self._tell_turn(place, status, None)
        for turn, before in self.feed.present("turn").items():
            if turn not in found and isinstance(before, TurnStatus):
                self._tell_turn(TurnPlace(before.block, before.conversation, turn), "finished", None)

    def _tell_turn(
        self, place: TurnPlace, status: TurnState, reason: FinishReason | None, lane: Lane | None = None
    ) -> None:
        payload = TurnStatus(**place._asdict(), status=status, reason=reason, lane=lane)
        self.feed.tell(
            StatusEnvelope,
            payload,
            block=place.block,
            key=("turn", place.turn),
            ended=status == "finished",
            running=place if status in ("running", "parked") else None,
        )

    # Approvals and budgets ---------------------------------------------------------------------------------------

    async def _watch_approvals(self) -> None:
        async with aclosing(watch_approvals(self._bus)) as approvals:
            async for approval in approvals:
                self._tell_approval(approval)

    def _tell_approval(self, approval: Approval) -> None:
        place: dict[str, Any] = {
            "block": approval.block,
            "conversation": approval.conversation,
            "turn": approval.turn,
        }
        key, settled = ("approval", approval.id), approval.settled
        if settled is None:
            request = ApprovalRequestPayload(
                **place, call=approval.call, name=approval.tool, hash=approval.call_hash, approval=approval.id,
                question=approval.question, asked_at=approval.asked_at, expires_at=approval.expires_at,
                reminded_at=approval.reminded_at, detail=approval.detail,
            )  # fmt: skip
            self.feed.tell(ApprovalRequestEnvelope, request, block=approval.block, key=key)
            return
        done = ApprovalSettledPayload(
            **place, call=approval.call, approval=approval.id, allow=settled.allow, by=settled.by,
            scope=settled.scope, answer=settled.answer, withdrawn=settled.withdrawn,
        )  # fmt: skip
        self.feed.tell(ApprovalSettledEnvelope, done, block=approval.block, key=key, ended=True)

    async def _watch_budgets(self) -> None:
        async with aclosing(watch_budget_events(self._bus)) as events:
            async for event in events:
                if event.event == "reset":
                    reset = BudgetReset(
                        measure=event.measure, window=event.window, block=event.block, by=event.by
                    )
                    self.alerts.tell(StatusEnvelope, reset, block=event.block or EVERY_BLOCK)
                else:
                    used_up = BankruptPayload(
                        measure=event.measure, window=event.window, block=event.block, turn=event.turn,
                        used=event.used, limit=event.limit, opens_at=event.opens_at,
                    )  # fmt: skip
                    self.alerts.tell(BankruptEnvelope, used_up, block=event.block or EVERY_BLOCK)

    # Conversations and blocks ------------------------------------------------------------------------------------

    async def _watch_memory(self) -> None:
        async with self._bus.listen(MEMORY_CHANGED) as changes:
            async for change in changes:
                for path in change.data.paths:
                    if conversation := parse_conversation_path(path):
                        self._note_conversation(*conversation)
                    elif is_block_file(path) and path.startswith(f"{BLOCKS_FOLDER}/"):
                        block = path.split("/")[1]
                        changed = BlockActivity(block=block, changed=True)
                        self.feed.tell(StatusEnvelope, changed, block=block)

    def _note_conversation(self, block: str, conversation: str) -> None:
        self._changed_conversations[conversation] = block
        self._some_conversation.set()

    async def _watch_conversations(self) -> None:
        """Tell what changed in conversations, one after the other. Changes in quick succession are told once."""
        while True:
            await self._some_conversation.wait()
            self._some_conversation = anyio.Event()
            while self._changed_conversations:
                conversation = next(iter(self._changed_conversations))
                block = self._changed_conversations.pop(conversation)
                try:
                    summary = await self._services.conversations.summary(conversation)
                except Refusal:
                    continue  # it was purged meanwhile
                payload = ConversationStatus(
                    block=block, conversation=conversation, title=summary.title, created_at=summary.created_at,
                    updated_at=summary.updated_at, message_count=summary.message_count, pinned=summary.pinned,
                    archived=summary.archived,
                )  # fmt: skip
                self.feed.tell(StatusEnvelope, payload, block=block)

    async def _watch_blocks(self) -> None:
        """Read what monitors report about blocks. A block that no monitor serves is asleep."""
        bucket = self._bus.kv(PULSE_BUCKET)
        while True:
            beats = [entry.value for entry in await bucket.entries() if entry.value is not None]
            for block in {beat.block for beat in beats} | set(self.feed.present("block")):
                pulses = [beat.pulse for beat in beats if beat.block == block]
                pulse = merge_pulses(pulses) if pulses else BlockStatus()
                payload = BlockActivity(
                    block=block, status=pulse.status, current_task=pulse.current_task, error=pulse.error
                )
                self.feed.tell(StatusEnvelope, payload, block=block, key=("block", block))
            await anyio.sleep(POLL_SECONDS)

    # Workers and panic -------------------------------------------------------------------------------------------

    async def _watch_workers(self) -> None:
        """Read the heartbeats of the workers."""
        bucket = self._bus.kv(WORKER_BUCKET)
        while True:
            beats = [entry.value for entry in await bucket.entries() if entry.value is not None]
            alive = {beat.id: _worker_status(beat) for beat in beats}
            for id, last in self.feed.present("worker").items():
                if id not in alive and isinstance(last, WorkerStatus):
                    gone = msgspec.structs.replace(last, alive=False)
                    self.feed.tell(StatusEnvelope, gone, block=PLATFORM, key=("worker", id), ended=True)
            for id, status in alive.items():
                self.feed.tell(StatusEnvelope, status, block=PLATFORM, key=("worker", id))
            await anyio.sleep(POLL_SECONDS)

    async def _watch_panic(self) -> None:
        """Follow the kill switch of this home, and the messages for other hosts."""

        async def engaged(message: ReceivedMessage[Panic]) -> None:
            self._tell_panic(True, message.data.by)

        async def released(message: ReceivedMessage[PanicRelease]) -> None:
            self._tell_panic(False, message.data.by)

        subscriptions = (
            await self._bus.subscribe(PANIC, engaged, limit=1),
            await self._bus.subscribe(PANIC_RELEASE, released, limit=1),
        )
        try:
            while True:
                await self._kill_switch.wait_until(True)
                record = self._kill_switch.read()
                self._tell_panic(True, record.by if record is not None else "")
                await self._kill_switch.wait_until(False)
                self._tell_panic(False, "")
        finally:
            with anyio.CancelScope(shield=True):
                for subscription in subscriptions:
                    await subscription.aclose()

    def _tell_panic(self, on: bool, by: str) -> None:
        payload = PanicPayload(on=on, by=by)
        is_on = bool(self.alerts.present("panic"))
        if on is not is_on:
            self.alerts.tell(PanicEnvelope, payload, block=EVERYBODY, key=("panic", ""), ended=not on)


_STATUSES: dict[str, TurnState] = {"started": "running", "parked": "parked", "finished": "finished"}


def _worker_status(beat: WorkerHeartbeat) -> WorkerStatus:
    return WorkerStatus(
        worker=beat.id, worker_kind=beat.kind, host=beat.host, draining=beat.draining,
        restarts=beat.restarts, trouble=beat.trouble, unstored=beat.unstored,
    )  # fmt: skip


async def _repeat(source: Callable[[], Awaitable[None]]) -> None:
    """Run a source again and again: it ends when the bus is away, and by a defect that the log shows."""
    while True:
        try:
            await source()
        except BusError as error:
            log.debug("a source of the platform feed waits for the bus: %s", error)
        except Exception:
            log.exception("a source of the platform feed failed; it begins again")
        await anyio.sleep(RETRY_SECONDS)
