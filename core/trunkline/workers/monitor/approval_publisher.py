"""Publishes the approvals of turns and schedules their timers on the server.

For each approval it publishes a state, for lists and channels, and two timers: a reminder and the deadline. A turn is
parked only after these are published. The journal is the source of truth; state and timers are derived from the
journal and may be published again.

Each decision is written to the audit log before the turn continues. While the audit log cannot be written, the turn
does not run (ADR 0025).
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec

from trunkline.config.settings import ApprovalsSettings
from trunkline.contracts.approvals.messages import (
    DECIDED_BY_DEADLINE,
    Approval,
    ApprovalDetail,
    ApprovalDue,
    Settlement,
    approval_id,
    describe_withdrawal,
)
from trunkline.contracts.approvals.subjects import APPROVAL, APPROVAL_DUE, APPROVAL_TIMER
from trunkline.contracts.audit.messages import AuditDecision, AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.journal_messages import (
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    TurnFinished,
    withdrawal_reason,
)
from trunkline.contracts.turns.lanes import lane_of
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.workers.monitor.steps import ToolAction
from trunkline.workers.monitor.turn import Phase, Turn
from trunkline_bus import Bus, BusError, Scope, SequenceConflict, key_of

log = logging.getLogger(__name__)

SETTLED_TTL = 3_600.0
"""Seconds for which a settled approval stays in the stream, for decisions that arrive too late."""


@dataclass(slots=True)
class PublishedApprovals:
    """The approvals of a turn that this monitor published since it replayed the journal.

    ``settled`` maps each published id to whether the approval was published as settled. ``complete`` is true when
    nothing is left to publish; later changes are published when they happen. The object is dropped with the cached
    parked turn, because it does not contain the approvals that another monitor publishes meanwhile.
    """

    settled: dict[str, bool] = field(default_factory=dict)
    complete: bool = False


class ApprovalPublisher:
    """Publishes the approvals of this monitor's turns."""

    def __init__(self, bus: Bus, settings: ApprovalsSettings) -> None:
        self._bus = bus
        self._settings = settings

    def decision_timeout(self, request: TurnRequested) -> float:
        """Return the seconds to wait for a person's decision. Turns for whose answer nobody waits have the background
        deadline."""
        settings = self._settings
        if lane_of(request.trigger, request.lane) == "background":
            return settings.background_deadline
        return settings.channel_deadlines.get(request.channel, settings.deadline)

    async def try_publish(
        self, turn: Turn, published: PublishedApprovals, calls: Collection[str] | None = None
    ) -> None:
        """Publish the changed approvals of these calls, or of all calls. After a BusError the rest is published later,
        at the latest before the turn parks or ends."""
        try:
            await self.publish(turn, published, calls)
        except BusError as error:
            published.complete = False
            log.info("approvals of a turn wait for the bus: %s", error)

    async def publish_decisions(
        self, turn: Turn, published: PublishedApprovals, calls: Collection[str] | None = None
    ) -> None:
        """Publish and audit the decisions about these calls, or about all calls. Raises BusError.

        The caller stops the turn at a BusError, so no call runs on a decision that is not in the audit log. Does
        nothing for a turn that runs no more calls.
        """
        if turn.phase not in (Phase.CLOSING, Phase.DONE):
            await self._publish(turn, published, calls, only_settled=True)

    async def publish_missing(self, turn: Turn, published: PublishedApprovals) -> None:
        """Publish the approvals that were not published yet, before the turn parks or ends. Raises BusError."""
        if turn.phase is Phase.PARKED and published.complete:
            return
        await self.publish(turn, published)
        published.complete = turn.phase is Phase.PARKED

    async def publish(
        self, turn: Turn, published: PublishedApprovals, calls: Collection[str] | None = None
    ) -> None:
        """Publish the changed approvals of these calls of the last answer, or of all calls. Raises BusError."""
        await self._publish(turn, published, calls, only_settled=False)

    async def _publish(
        self, turn: Turn, published: PublishedApprovals, calls: Collection[str] | None, *, only_settled: bool
    ) -> None:
        if turn.request is None or (calls is not None and not calls):
            return
        actions = _actions(turn) if calls is None else _named(turn, calls)
        for approval in _approvals(turn, turn.request, actions):
            settled = approval.settled is not None
            if published.settled.get(approval.id) in (settled, True) or (only_settled and not settled):
                continue
            await (self._publish_settlement(approval) if settled else self._publish_question(approval))
            published.settled[approval.id] = settled

    async def _publish_question(self, approval: Approval) -> None:
        """Schedule the timers, then publish the question: a question without a timer would never end."""
        whole = approval.expires_at - approval.asked_at
        await self._schedule_timer(approval, "expire", whole)
        if self._settings.remind_after_share < 1:
            await self._schedule_timer(approval, "remind", whole * self._settings.remind_after_share)
        try:
            await self._append(approval, 0)
        except SequenceConflict:
            return  # a former owner of the turn has published it

    async def _publish_settlement(self, approval: Approval) -> None:
        if approval.settled is None:
            return
        while True:
            last = await self._bus.last(APPROVAL, approval=approval.id)
            if last is not None and last.data.settled is not None:
                return
            await self._audit(approval, approval.settled)
            if last is None:  # the question was not published, or its settlement has left the stream since
                return
            try:
                return await self._append(approval, last.seq, ttl=SETTLED_TTL)
            except SequenceConflict:
                continue  # a gateway sent a reminder meanwhile

    async def _audit(self, approval: Approval, settled: Settlement) -> None:
        """Record the decision, or the withdrawal of the question, in the audit log.

        The audit line is written before the settlement. After a crash in between, both are written again. The line of
        a decision then has the same id and time, so memory stores it once. Raises BusError; then both are published
        later, at the latest before the turn parks or ends.
        """
        decision, why = _audited(approval, settled)
        line = AuditEntry(
            id=f"audit_{key_of('settled', approval.id)}",
            at=settled.at,
            event="approval",
            block=approval.block,
            actor=approval.actor,
            conversation=approval.conversation,
            turn=approval.turn,
            call=approval.call,
            tool=approval.detail.tool or approval.tool,
            decision=decision,
            by=(settled.by,) if settled.by else (),
            why=why,
        )
        await self._bus.append(AUDIT, line, msg_id=line.id, block=line.block)

    async def _append(self, approval: Approval, over: int, ttl: float | None = None) -> None:
        scope = Scope(block=approval.block, conversation=approval.conversation, turn=approval.turn)
        await self._bus.append(APPROVAL, approval, scope=scope, expect=over, ttl=ttl, approval=approval.id)

    async def _schedule_timer(self, approval: Approval, what: str, after: timedelta) -> None:
        due = ApprovalDue(
            id=approval.id,
            turn=approval.turn,
            call=approval.call,
            asked_at=approval.asked_at,
            what="expire" if what == "expire" else "remind",
        )
        await self._bus.schedule(
            APPROVAL_TIMER,
            APPROVAL_DUE,
            due,
            at=approval.asked_at + after,
            msg_id=f"{approval.id}-{what}",
            approval=approval.id,
            what=what,
        )


def affected_calls(entries: Iterable[JournalEntry]) -> set[str] | None:
    """Return the calls whose approvals these entries may change; None for any call of the turn."""
    calls = set[str]()
    for entry in entries:
        if isinstance(entry, CancelRecorded | TurnFinished):
            return None
        if isinstance(entry, ApprovalAsked | ApprovalRecorded):
            calls.add(entry.call_id)
    return calls


def _audited(approval: Approval, settled: Settlement) -> tuple[AuditDecision, str]:
    """Return the decision for the audit log, and a sentence with the reason."""
    is_question = approval.detail.is_question
    if settled.withdrawn:
        return "withdrawn", f"{describe_withdrawal(settled.withdrawn, settled.by)}, so it was not decided."
    if settled.by == DECIDED_BY_DEADLINE:
        return "expired", f"nobody {'answered' if is_question else 'decided'} before the deadline."
    if is_question:
        return ("answered" if settled.allow else "unanswered"), ""
    return ("approved", f"for {settled.scope}.") if settled.allow else ("denied", "")


def _actions(turn: Turn) -> Iterator[ToolAction]:
    return (action for step in turn.steps for action in step.actions)


def _named(turn: Turn, calls: Iterable[str]) -> Iterator[ToolAction]:
    found = (turn.steps[-1].action(call) for call in calls)
    return (action for action in found if action is not None)


def _approvals(turn: Turn, request: TurnRequested, actions: Iterable[ToolAction]) -> Iterator[Approval]:
    found = (
        _approval(request, action, asked, settlement)
        for action in actions
        for asked, settlement in _questions(turn, action)
    )
    return (approval for approval in found if approval is not None)


def _questions(turn: Turn, action: ToolAction) -> Iterator[tuple[ApprovalAsked, Settlement | None]]:
    """Yield the questions about a call, oldest first, each with how it ended. The newest may be open."""
    for asked, decision in action.earlier_decisions:
        yield asked, _settlement_by(decision)
    if action.request is not None:
        yield action.request, _settlement(turn, action)


def _approval(
    request: TurnRequested, action: ToolAction, asked: ApprovalAsked, settlement: Settlement | None
) -> Approval | None:
    """Return the state of a question about a call; None when an earlier version recorded it without times."""
    if isinstance(asked.asked_at, msgspec.UnsetType):
        return None
    if isinstance(asked.expires_at, msgspec.UnsetType):
        return None
    return Approval(
        id=approval_id(request.turn, action.call.id, asked.asked_at),
        turn=request.turn,
        call=action.call.id,
        call_hash=asked.call_hash,
        tool=action.call.name,
        block=request.block,
        conversation=request.conversation,
        channel=request.channel,
        actor=request.actor,
        question=_for_agent(request) + asked.question,
        asked_at=asked.asked_at,
        expires_at=asked.expires_at,
        detail=ApprovalDetail() if isinstance(asked.detail, msgspec.UnsetType) else asked.detail,
        settled=settlement,
    )


def _for_agent(request: TurnRequested) -> str:
    """Return words that say for which agent a question is, and for which conversation it works; "" for a person's."""
    parent = request.parent
    if isinstance(parent, msgspec.UnsetType):
        return ""
    return f"For the agent {parent.agent}, which works for the conversation {parent.root_conversation}: "


def _settlement(turn: Turn, action: ToolAction) -> Settlement | None:
    """Return how the approval ended: by a decision or with its turn. None while it is open."""
    if action.decision is not None:
        return _settlement_by(action.decision)
    if turn.cancelled is not None:
        why = withdrawal_reason(turn.cancelled)
        return Settlement(allow=False, by=turn.cancelled.by, at=utc_now(), withdrawn=why)
    over = turn.phase in (Phase.CLOSING, Phase.DONE)
    return Settlement(allow=False, by="", at=utc_now(), withdrawn="ended") if over else None


def _settlement_by(decision: ApprovalRecorded) -> Settlement:
    return Settlement(
        allow=decision.allow,
        by=decision.by,
        at=utc_now() if isinstance(decision.decided_at, msgspec.UnsetType) else decision.decided_at,
        scope="once" if isinstance(decision.scope, msgspec.UnsetType) else decision.scope,
        answer="" if isinstance(decision.answer, msgspec.UnsetType) else decision.answer,
    )
