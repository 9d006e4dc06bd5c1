"""The effect ledger: no tool call has its effect twice (design, section 4).

Each call has its own subject in the EFFECT stream, written by compare-and-set: of all workers one starts it::

    NotStarted ── start ──> InProgress ── finish ──> Completed
     │                       └── its worker left it ──> Abandoned ── start (if repeatable) or finish (unknown)
     └── ask ──> ApprovalPending ── start (once approved) ──> InProgress

A question is recorded only of a call that another worker may have, under other rules or by other plugins. A call with
the effect ``read`` goes from NotStarted to Completed. A worker that cannot record an outcome, because the disk is full,
still has it: it answers repeats with it, and records it once there is room. Running tools is not done here.
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

log = logging.getLogger(__name__)

POLL = 0.5
"""Seconds between two looks at a call that another worker runs; a new record is seen at once."""

PATIENT, IMPATIENT = 60.0, 2.0
"""Seconds for which a ledger that does not answer is waited for: patiently, as the journal is, for what must not run
twice, because servers that elect a leader need several; impatiently for what may."""

MOST_NOTED = 64
"""Outcomes of reads that are being recorded at once, after whoever asked was answered."""

LATE_PAUSE, LONGEST_LATE_PAUSE = 0.5, 5.0
"""Seconds between tries to record an outcome that could not be recorded at once, doubled each time."""


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Nobody has started the call."""

    seq: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """The call has not started. It may start only with the approval that was asked for."""

    seq: int
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True)
class InProgress:
    """A worker started the call and has not finished it."""

    seq: int
    started: EffectStarted


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The worker that started the call is gone, or does not know of it any more."""

    seq: int
    started: EffectStarted


@dataclass(frozen=True, slots=True)
class Completed:
    """The call has its outcome."""

    seq: int
    outcome: ToolOutcome


SettledState = NotStarted | ApprovalPending | Abandoned | Completed
"""How a call stands that no live worker is at."""


class LedgerConflict(Exception):
    """Another worker wrote first: look again."""


class Ledger:
    """The ledger as one worker sees it. All methods raise ``BusError`` when the stream cannot be used. In ``tasks`` is
    recorded what could not be at once."""

    def __init__(self, bus: Bus, worker: str, liveness: Liveness, tasks: TaskGroup) -> None:
        self._bus = bus
        self._worker = worker
        self._liveness = liveness
        self._tasks = tasks
        self._noting = anyio.Semaphore(MOST_NOTED, fast_acquire=True)
        self._late: dict[str, ToolOutcome] = {}
        """What came of calls of which the ledger still says that they are under way here."""

    def has_unrecorded(self, call: str) -> bool:
        """Report whether this worker has an outcome of the call that it could not record yet."""
        return call in self._late

    async def settled_state(self, call: str, *, patient: bool) -> SettledState:
        """How the call stands, once no live worker is at it. The caller must not be running it itself.

        ``patient`` is how long the ledger is waited for: what is told of a call without it may be wrong.
        """
        timeout = PATIENT if patient else IMPATIENT
        state = await self._look(call, timeout)
        if not isinstance(state, InProgress):
            return state
        if state.started.worker != self._worker:
            return await self._wait_until_left(call, timeout)
        late = self._late.get(call)
        return Abandoned(state.seq, state.started) if late is None else Completed(state.seq, late)

    async def record_start(self, call: CallTool, spec: ToolSpec, over: int) -> int:
        """Record that this worker is about to run the call; returns the record's sequence.

        Raises:
            LedgerConflict: the last record is not ``over`` any more, so another worker has the call.
        """
        record = EffectStarted(
            call=call.call, tool=spec.name, worker=self._worker, effect=spec.effect, turn=call.turn
        )
        try:
            with anyio.CancelScope(shield=True):
                ack = await self._bus.append(
                    EFFECT, record, expect=over, timeout=PATIENT, scope=scope_of(call), call=call.call
                )
        except SequenceConflict as conflict:
            raise LedgerConflict(call.call) from conflict
        return ack.seq

    async def record_outcome(
        self, call: CallTool, outcome: ToolOutcome, over: int, *, patient: bool
    ) -> ToolOutcome:
        """Record the outcome and return the one that counts: another's, when that was recorded first.

        An outcome that cannot be recorded now is returned all the same, since its effect has happened, and recorded
        later. ``patient`` is how long it is tried before that: it matters for what must not run again.
        """
        # Shielded, because the effect has happened: a stop or a drain must not lose what came of it. Written over the
        # record of the start, so a worker that took this one for dead and recorded "unknown" first has the last word,
        # and every asker is told the same (ADR 0029). While the stream cannot be written the outcome is kept here, and
        # ``has_unrecorded`` keeps this worker responsible. A crash then loses it: the next worker finds the call
        # abandoned.
        timeout = PATIENT if patient else IMPATIENT
        with anyio.CancelScope(shield=True):
            try:
                await self._record(call, outcome, over, timeout)
            except SequenceConflict:
                return await self._other(call.call, outcome, timeout)
            except BusError as error:
                log.error("the outcome of call %s is to be recorded later: %s", call.call, error)
                self._late[call.call] = outcome
                self._tasks.start_soon(self._record_late, call, outcome, over)
        return outcome

    async def record_soon(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        """Have the outcome of a call recorded that was never recorded as started, if that can be done: without it the
        call may run again. Returns at once, unless many are being recorded."""
        await self._noting.acquire()
        self._tasks.start_soon(self._note, call, outcome, over)

    async def _note(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        try:
            await self._record(call, outcome, over, IMPATIENT)
        except BusError as error:
            log.info("the outcome of call %s is not recorded: %s", call.call, error)
        finally:
            self._noting.release()

    async def record_refusal(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        """Record that the call was refused, or that a person is asked about it. A ledger that cannot be written lets
        nobody begin either.

        Raises:
            LedgerConflict: the last record is not ``over`` any more, so another worker has begun the call.
        """
        asked = EffectAsked(call=call.call, outcome=outcome) if outcome.status == "approval" else None
        try:
            await self._record(call, outcome, over, IMPATIENT, asked)
        except SequenceConflict as conflict:
            raise LedgerConflict(call.call) from conflict
        except BusError as error:
            log.info("the refusal of call %s is not recorded: %s", call.call, error)

    async def _record(
        self,
        call: CallTool,
        outcome: ToolOutcome,
        over: int,
        timeout: float,
        asked: EffectAsked | None = None,
    ) -> Ack:
        record = asked or EffectFinished(call=call.call, outcome=outcome)
        return await self._bus.append(
            EFFECT, record, expect=over, timeout=timeout, scope=scope_of(call), call=call.call
        )

    async def _record_late(self, call: CallTool, outcome: ToolOutcome, over: int) -> None:
        """Record it for those who wait for this worker. Only what the stream will never take is given up."""
        pause = LATE_PAUSE
        while True:
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_LATE_PAUSE)
            try:
                await self._record(call, outcome, over, PATIENT)
            except (ConnectionFailed, StorageFull, StreamUnavailable):
                continue
            except SequenceConflict:
                pass  # it was recorded after all
            except BusError as error:
                log.error("the outcome of call %s cannot be recorded: %s", call.call, error)
            del self._late[call.call]
            return

    async def _other(self, call: str, ours: ToolOutcome, timeout: float) -> ToolOutcome:
        try:
            state = await self._look(call, timeout)
        except BusError as error:
            log.error("another worker recorded call %s, but what cannot be read: %s", call, error)
            return ours
        return as_repeated(state.outcome) if isinstance(state, Completed) else ours

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
        """Wait until the worker that holds the call finishes it or has left it."""
        # Subscribed before the first look, so that no record falls between the two. Looked at once more after its
        # worker has left: it may have recorded the outcome before it died. Only what is still in progress then is
        # abandoned; if its worker lives after all, the compare-and-set decides which of the two writes first.
        bell = _Wakeup()
        async with self._bus.listen(EFFECT, call=call) as records, anyio.create_task_group() as tasks:
            tasks.start_soon(bell.ring_on_items, records)
            while True:
                state = await self._look(call, timeout)
                if not isinstance(state, InProgress):
                    break
                if await self._liveness.has_left(state.started.worker, call):
                    state = await self._look(call, timeout)  # it may have finished just before it left
                    break
                await bell.wait(POLL)
            tasks.cancel_scope.cancel()
        return Abandoned(state.seq, state.started) if isinstance(state, InProgress) else state


class _Wakeup:
    """Rings when something comes; an async generator must not be cancelled in its middle, a bell may."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    async def ring_on_items(self, items: AsyncIterator[Any]) -> None:
        async for _ in items:
            self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Return when it rang since the last wait, at the latest after ``seconds``."""
        with anyio.move_on_after(seconds):
            await self._rung.wait()
        self._rung = anyio.Event()


def as_repeated(outcome: ToolOutcome) -> ToolOutcome:
    """The outcome, marked as one out of the ledger."""
    return msgspec.structs.replace(outcome, repeated=True)


def scope_of(call: CallTool) -> Scope:
    """Where the records of a call belong."""
    return Scope(block=call.block, conversation=call.conversation, turn=call.turn)
