"""The effect ledger: no tool call has its effect twice (design, section 4).

Each call has its own subject in the EFFECT stream, written by compare-and-set, so only one worker starts the call::

    NotStarted ── start ──> InProgress ── finish ──> Completed
     │                       └── its worker left it ──> Abandoned ── start (if repeatable) or finish (unknown)
     └── ask ──> ApprovalPending ── start (once approved) ──> InProgress

A question is recorded only when another worker, with other rules or plugins, may have the call. A call with the
effect ``read`` changes directly from NotStarted to Completed. When a worker cannot record an outcome, for example
because the disk is full, it keeps the outcome in memory, answers repeated requests with it, and records it as soon as
the stream accepts it. This module runs no tools.
"""

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline.contracts.tools.messages import (
    CallTool,
    EffectAsked,
    EffectFinished,
    EffectStarted,
    ToolOutcome,
    ToolSpec,
)
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.workers.tools.liveness import Liveness
from trunkline_bus import (
    Ack,
    Bus,
    BusError,
    ConnectionFailed,
    Scope,
    SequenceConflict,
    StorageFull,
    StreamUnavailable,
)
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

POLL = 0.5
"""Seconds between two checks of a call that another worker runs; a new record is seen at once."""

PATIENT_TIMEOUT, SHORT_TIMEOUT = 60.0, 2.0
"""Seconds to wait for a ledger that does not answer. Calls that must not run twice wait long, since servers
that elect a leader need several seconds; repeatable calls wait briefly."""

MAX_BACKGROUND_RECORDS = 64
"""Largest number of outcomes of reads that are recorded in the background."""

LATE_PAUSE, LONGEST_LATE_PAUSE = 0.5, 5.0
"""Seconds between attempts to record an outcome later, doubled each time."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """No worker has started the call."""

    seq: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """The call has not started. It may start only with the approval that ``outcome`` asks for."""

    seq: int
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True)
class InProgress:
    """A worker started the call and has not finished it."""

    seq: int
    started: EffectStarted


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The worker that started the call has ended, or no longer has the call."""

    seq: int
    started: EffectStarted


@dataclass(frozen=True, slots=True)
class Completed:
    """The call has an outcome."""

    seq: int
    outcome: ToolOutcome


SettledState = NotStarted | ApprovalPending | Abandoned | Completed
"""The state of a call that no live worker runs."""


class LedgerConflict(Exception):
    """Another worker wrote first: read the state again."""


class Ledger:
    """The ledger, as used by one worker. ``tasks`` runs the deferred recording.

    All methods raise ``BusError`` when the stream cannot be used.
    """

    def __init__(self, bus: Bus, worker: str, liveness: Liveness, tasks: TaskGroup) -> None:
        self._bus = bus
        self._worker = worker
        self._liveness = liveness
        self._tasks = tasks
        self._background_slots = anyio.Semaphore(MAX_BACKGROUND_RECORDS, fast_acquire=True)
        self._unrecorded: dict[str, ToolOutcome] = {}
        """Outcomes that could not be recorded yet. The ledger shows these calls as running here."""

    def has_unrecorded(self, call: str) -> bool:
        """Report whether this worker has an outcome of the call that is not recorded yet."""
        return call in self._unrecorded

    async def settled_state(self, call: str, *, patient: bool) -> SettledState:
        """Return the state of the call as soon as no live worker runs it. This worker must not be running it itself.

        ``patient`` selects how long to wait for the ledger.
        """
        timeout = PATIENT_TIMEOUT if patient else SHORT_TIMEOUT
        state = await self._look(call, timeout)
        if not isinstance(state, InProgress):
            return state
        if state.started.worker != self._worker:
            return await self._wait_until_left(call, timeout)
        unrecorded = self._unrecorded.get(call)
        return Abandoned(state.seq, state.started) if unrecorded is None else Completed(state.seq, unrecorded)

    async def record_start(self, call: CallTool, spec: ToolSpec, over: int) -> int:
        """Record that this worker is about to run the call; return the record's sequence number.

        Raises:
          LedgerConflict: ``over`` is no longer the last record, so another worker has the call.
        """
        record = EffectStarted(
            call=call.call, tool=spec.name, worker=self._worker, effect=spec.effect, turn=call.turn
        )
        try:
            with anyio.CancelScope(shield=True):
                ack = await self._bus.append(
                    EFFECT, record, expect=over, timeout=PATIENT_TIMEOUT, scope=scope_of(call), call=call.call
                )
        except SequenceConflict as conflict:
            raise LedgerConflict(call.call) from conflict
        return ack.seq

    async def record_outcome(
        self, call: CallTool, outcome: ToolOutcome, over: int, *, patient: bool
    ) -> ToolOutcome:
        """Record the outcome, and return the outcome that counts: that of another worker if it was recorded first.

        When the stream cannot be written, the outcome is still returned, because the effect has happened, and is
        recorded later. ``patient`` selects how long to try first: long for calls that must not run twice.
        """
        # The write is shielded, because the effect has happened: a stop or a drain must not lose the outcome. It
        # expects the record of the start as the last record. If another worker considered this one dead and recorded
        # "unknown" first, that outcome counts, and every caller gets the same answer (ADR 0029). While the stream
        # cannot be written, this worker keeps the outcome, and ``has_unrecorded`` reports that it still has the call.
        # A crash then loses the outcome, and the next worker finds the call abandoned.
        timeout = PATIENT_TIMEOUT if patient else SHORT_TIMEOUT
        with anyio.CancelScope(shield=True):
            try:
                await self._record(call, outcome, over, timeout)
            except SequenceConflict:
                return await self._other_outcome(call.call, outcome, timeout)
            except BusError as error:
                log.error("the outcome of call %s could not be recorded; trying again: %s", call.call, error)
                self._unrecorded[call.call] = outcome
                self._tasks.start_soon(self._record_late, call, outcome, over)
        return outcome

    async def record_soon(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        """Record the outcome of a call whose start was not recorded, in the background. If that fails, the
        call may run again.

        Returns at once, unless many outcomes are being recorded.
        """
        await self._background_slots.acquire()
        self._tasks.start_soon(self._record_in_background, call, outcome, over)

    async def _record_in_background(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        try:
            await self._record(call, outcome, over, SHORT_TIMEOUT)
        except BusError as error:
            log.info("the outcome of call %s was not recorded: %s", call.call, error)
        finally:
            self._background_slots.release()

    async def record_refusal(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        """Record that the call was refused, or that a person is asked about it. A failure to write is only logged: as
        long as the ledger cannot be written, no worker can start the call.

        Raises:
            LedgerConflict: ``over`` is no longer the last record, so another worker has started the call.
        """
        asked = EffectAsked(call=call.call, outcome=outcome) if outcome.status == "approval" else None
        try:
            await self._record(call, outcome, over, SHORT_TIMEOUT, asked)
        except SequenceConflict as conflict:
            raise LedgerConflict(call.call) from conflict
        except BusError as error:
            log.info("the refusal of call %s was not recorded: %s", call.call, error)

    async def _record(
        self,
        call: CallTool,
        outcome: ToolOutcome,
        over: int,
        timeout: float,
        request: EffectAsked | None = None,
    ) -> Ack:
        record = request or EffectFinished(call=call.call, outcome=outcome)
        return await self._bus.append(
            EFFECT, record, expect=over, timeout=timeout, scope=scope_of(call), call=call.call
        )

    async def _record_late(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        """Record an outcome that this worker keeps, retrying until the stream accepts it. The outcome is dropped only
        when the stream rejects it permanently.
        """
        backoff = Backoff(LATE_PAUSE, LONGEST_LATE_PAUSE)
        while True:
            await backoff.sleep()
            try:
                await self._record(call, outcome, over, PATIENT_TIMEOUT)
            except (ConnectionFailed, StorageFull, StreamUnavailable):
                continue
            except SequenceConflict:
                pass  # an earlier attempt or another worker recorded an outcome
            except BusError as error:
                log.error("the outcome of call %s cannot be recorded: %s", call.call, error)
            del self._unrecorded[call.call]
            return

    async def _other_outcome(self, call: str, own: ToolOutcome, timeout: float) -> ToolOutcome:
        try:
            state = await self._look(call, timeout)
        except BusError as error:
            log.error("another worker recorded call %s, but its outcome cannot be read: %s", call, error)
            return own
        return as_repeated(state.outcome) if isinstance(state, Completed) else own

    async def _look(self, call: str, timeout: float) -> NotStarted | ApprovalPending | InProgress | Completed:
        last = await self._bus.last(EFFECT, timeout=timeout, call=call)
        if last is None:
            return NotStarted()
        if isinstance(last.data, EffectFinished):
            return Completed(last.seq, last.data.outcome)
        if isinstance(last.data, EffectAsked):
            return ApprovalPending(last.seq, last.data.outcome)
        return InProgress(last.seq, last.data)

    async def _wait_until_left(self, call: str, timeout: float) -> SettledState:
        """Wait until the worker that has the call finishes it, loses it or ends."""
        # Subscribe before the first read, so that no record is missed between them. Read once more after the worker
        # has left, because it may have recorded the outcome before it died. Only a call that is then still in
        # progress is abandoned. If its worker is alive nevertheless, the compare-and-set decides which worker records
        # the outcome.
        wakeup = _Wakeup()
        async with self._bus.listen(EFFECT, call=call) as records, anyio.create_task_group() as tasks:
            tasks.start_soon(wakeup.wake_on_items, records)
            while True:
                state = await self._look(call, timeout)
                if not isinstance(state, InProgress):
                    break
                if await self._liveness.has_left(state.started.worker, call):
                    state = await self._look(
                        call, timeout
                    )  # the worker may have finished the call just before it left
                    break
                await wakeup.wait(POLL)
            tasks.cancel_scope.cancel()
        return Abandoned(state.seq, state.started) if isinstance(state, InProgress) else state


class _Wakeup:
    """Wakes a waiter when an item arrives. The wait is separate from the async generator, because the generator must
    not be cancelled between two items.
    """

    def __init__(self) -> None:
        self._woken = anyio.Event()

    async def wake_on_items(self, items: AsyncIterator[Any]) -> None:
        async for _ in items:
            self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Return when an item has arrived since the last wait, or after ``seconds``."""
        with anyio.move_on_after(seconds):
            await self._woken.wait()
        self._woken = anyio.Event()


def as_repeated(outcome: ToolOutcome) -> ToolOutcome:
    """Return the outcome, marked as repeated from the ledger."""
    return msgspec.structs.replace(outcome, repeated=True)


def scope_of(call: CallTool) -> Scope:
    """Return the scope of a call's records."""
    return Scope(block=call.block, conversation=call.conversation, turn=call.turn)
