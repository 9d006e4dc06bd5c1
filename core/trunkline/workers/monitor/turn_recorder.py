"""Records the entries of turns, and publishes what follows from them: metrics, facts and approvals."""

import logging
from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace
from opentelemetry.metrics import get_meter

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    TurnFinished,
    TurnParked,
    TurnRecord,
    TurnStarted,
)
from trunkline.contracts.turns.lanes import lane_of, recorded_lane
from trunkline.contracts.turns.messages import FinishReason, TurnFact, TurnRequested
from trunkline.contracts.turns.subjects import TURN_FACT
from trunkline.telemetry.instruments import Instruments
from trunkline.telemetry.turn_metrics import TurnMetrics
from trunkline.workers.monitor.approval_publisher import ApprovalPublisher, affected_calls
from trunkline.workers.monitor.journal import Journal
from trunkline.workers.monitor.turn import Turn
from trunkline.workers.monitor.turn_run import TurnRun
from trunkline_bus import Bus, BusError, StorageFull, StreamError

log = logging.getLogger(__name__)

_STATISTICS: Mapping[type, Literal["started", "parked"]] = {TurnStarted: "started", TurnParked: "parked"}


class TurnRecorder:
    """Writes to the journals of conversations in this monitor's name."""

    def __init__(self, bus: Bus, worker: str, approvals: ApprovalPublisher) -> None:
        self._bus = bus
        self._worker = worker
        self._approvals = approvals
        self._metrics = TurnMetrics(Instruments(get_meter("trunkline.monitor")))

    async def record(self, run: TurnRun, entries: tuple[JournalEntry, ...]) -> None:
        """Record entries of a running turn. Raises Fenced when another monitor owns it, and BusError.

        A decision is in the audit log when this method returns, so the turn runs a call only after its approval is
        audited.
        """
        # The journal is written first: only its compare-and-set shows whether this monitor still owns the conversation
        # (ADR 0003), and the metrics, facts and approvals are derived from the entries (ADR 0005). After a crash behind
        # the write, the server delivers the inbox item again, because the item is settled last. ConversationQueue then
        # publishes the approvals (ADR 0025) and the fact that the turn finished (ADR 0022). The facts that the turn
        # started or parked stay lost: they are used for statistics only.
        await self.write(run.journal, run.request, run.epoch, entries)
        for entry in entries:
            await self._publish_statistic(run.request, entry)
        calls = affected_calls(entries)
        await self._approvals.publish_decisions(run.turn, run.published, calls)
        await self._approvals.try_publish(run.turn, run.published, calls)

    async def write(
        self, journal: Journal, request: TurnRequested, epoch: int, entries: tuple[JournalEntry, ...]
    ) -> None:
        """Write entries to the journal and count them. Raises Fenced and BusError."""
        await journal.write(request, epoch, entries)
        record = TurnRecord(turn=request.turn, epoch=epoch, owner=self._worker, entries=entries)
        self._metrics.record(record, utc_now())

    async def publish_finished(self, turn: Turn, request: TurnRequested, end: TurnFinished) -> None:
        """Store the fact that the turn finished in its stream; return once the server has stored it.

        The message id is derived from the turn, so a repeat within the stream's duplicate window is not stored again
        (ADR 0022). When the stream is missing or the server refuses the fact, the fact is lost and an error is logged;
        the conversation continues. Raises ConnectionFailed while the server is unavailable, and StorageFull.
        """
        fact = _finished_fact(turn, request, end)
        try:
            await self._bus.append(
                TURN_FACT, fact, msg_id=f"{request.turn}-finished", block=request.block, fact=fact.fact
            )
        except StorageFull:
            raise  # a full disk stops every turn, so the caller retries
        except StreamError as error:
            log.error(
                "nothing learns from turn %s, because the stream %s did not store that it finished: %s. A restart of "
                "Trunkline creates a missing stream.",
                request.turn,
                TURN_FACT.stream,
                error,
            )

    async def _publish_statistic(self, request: TurnRequested, entry: JournalEntry) -> None:
        """Publish the fact that the turn started or parked, if the entry records it. Awaits no acknowledgement."""
        kind = _STATISTICS.get(type(entry))
        if kind is None:
            return
        try:
            await self._bus.publish(TURN_FACT, _fact(request, kind), block=request.block, fact=kind)
        except BusError as error:
            log.debug("the fact that turn %s %s was not published: %s", request.turn, kind, error)


def _finished_fact(turn: Turn, request: TurnRequested, end: TurnFinished) -> TurnFact:
    fact = _fact(request, "finished", end.reason)
    if turn.started is None or request.history is not None:
        return fact
    used = turn.summary_record
    return replace(
        fact,
        model=turn.started.model,
        context=end.context,
        summary_record=used.id if used is not None else "",
    )


def _fact(
    request: TurnRequested, kind: Literal["started", "parked", "finished"], reason: FinishReason | None = None
) -> TurnFact:
    return TurnFact(
        turn=request.turn,
        block=request.block,
        conversation=request.conversation,
        fact=kind,
        reason=reason,
        lane=recorded_lane(lane_of(request.trigger, request.lane)),
    )
