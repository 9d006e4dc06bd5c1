"""Approvals at the gateway: list the pending ones, record decisions, send reminders and apply deadlines.

The first decision about an approval counts, also when several gateways receive decisions at the same time. The
deduplication of the inbox stream determines the first decision; later deciders receive it as the reply.
"""

import logging

import msgspec

from trunkline.contracts.approvals.messages import (
    DECIDED_BY_DEADLINE,
    Approval,
    ApprovalDue,
    ApprovalList,
    ApprovalView,
    ListApprovals,
    WithdrawalReason,
    describe_decider,
    describe_withdrawal,
)
from trunkline.contracts.approvals.subjects import APPROVAL, APPROVAL_DUE
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.streams import DEADLINE_CONSUMER
from trunkline.contracts.turns.journal_messages import ApprovalAsked, CancelRecorded, withdrawal_reason
from trunkline.contracts.turns.lanes import lane_of
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import ErrorCode
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.grants import GrantStore
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus, BusError, Refusal, Scope, SequenceConflict, key_of

log = logging.getLogger(__name__)

ACCEPT_SECONDS = 5.0
"""Seconds that the inbox may take to acknowledge a decision. After that the reply states that nothing was recorded."""

MAX_ANSWER_CHARS = 32_000
"""Largest number of characters of an answer. An answer is part of a prompt, not a document."""

RETRY_SECONDS = 2.0
"""Seconds until a due timer is tried again after a failure."""


class AlreadyDecided(Refusal):
    """An earlier decision exists and counts. ``verdict`` and ``by`` describe that decision."""

    def __init__(self, allow: bool, by: str, *, question: bool = False) -> None:
        self.by = by
        yes, no = ("answered", "left unanswered") if question else ("allowed", "denied")
        self.verdict = yes if allow else no
        sentence = f"This was {self.verdict} by {describe_decider(by)} already."
        if by == DECIDED_BY_DEADLINE:
            did, so = ("answered", "") if question else ("decided", ", so it was denied")
            sentence = f"Nobody {did} this in time{so}."
        super().__init__(ErrorCode.CONFLICT, sentence)


class ApprovalWithdrawn(Refusal):
    """The turn ended before a person decided, so no decision counts. ``why`` and ``by`` describe how the turn ended."""

    def __init__(self, cancelled: CancelRecorded | None) -> None:
        self.why: WithdrawalReason = "ended" if cancelled is None else withdrawal_reason(cancelled)
        self.by = "" if cancelled is None else cancelled.by
        because = describe_withdrawal(self.why, self.by)
        super().__init__(
            ErrorCode.CONFLICT, f"The question was withdrawn, because {because}. Nothing was decided."
        )


class ApprovalService:
    """Lists approvals and records decisions.

    Methods raise Refusal with a fixed code, and BusError when the bus does not answer.
    """

    def __init__(self, bus: Bus, turns: TurnLookup, grants: GrantStore, access: BlockAccess) -> None:
        self._access = access
        self._bus = bus
        self._turns = turns
        self._grants = grants

    async def list_approvals(self, request: ListApprovals, sender: Sender) -> ApprovalList:
        """Return the approvals of the blocks that the sender may read, oldest first. They are read from the stream, so
        every gateway returns the same list."""
        rights = await self._access.rights_of(sender.identity)
        known = [stored.data async for stored in self._bus.history(APPROVAL, after=0)]
        found = [
            approval
            for approval in known
            if request.block in (None, approval.block)
            and (request.settled or _is_open(approval))
            and rights.may(TokenScope.READ, approval.block)
        ]
        return ApprovalList(approvals=tuple(sorted(found, key=lambda one: (one.asked_at, one.id))))

    async def get_approval(self, id: str, sender: Sender) -> ApprovalView:
        """Return one approval with the arguments of its call.

        ``id`` may be the beginning of an id. Refused with ``not_found`` when no approval has it, and with
        ``conflict`` when several begin with it.
        """
        approval = await self._find_by_prefix(id, sender)
        state = await self._turns.find(approval.turn)
        call = state.call(approval.call) if state is not None else None
        return ApprovalView(approval=approval, arguments=call.arguments if call is not None else {})

    async def _find_by_prefix(self, id: str, sender: Sender) -> Approval:
        known = (await self.list_approvals(ListApprovals(settled=True), sender)).approvals
        found = [approval for approval in known if id and approval.id.startswith(id)]
        found = [approval for approval in found if approval.id == id] or found
        if not found:
            raise refusal(
                ErrorCode.NOT_FOUND,
                "No approval has this id. trunkline approvals list shows the pending ones.",
            )
        if len(found) > 1:
            raise refusal(ErrorCode.CONFLICT, f"{len(found)} approvals begin with {id}. Give more of the id.")
        return found[0]

    async def decide(self, decision: ApprovalDecided, sender: Sender) -> AlreadyDecided | None:
        """Record the decision about a parked call, or the answer to a question.

        The decision is bound to the hash of the call that was shown. A repeat by the same person changes
        nothing; the recorded decision is returned. The first decision returns None.

        Refused with ``forbidden`` for anyone who may not approve in the block, and for a grant by anyone but the owner;
        with ``not_found`` when there is no such question, and with ``conflict`` when another person decided first,
        when the turn ended, or when the call changed. Raises InvalidField for a scope or answer that does not fit.
        """
        rights = await self._access.rights_of(sender.identity)
        if not sender.identity.may(TokenScope.APPROVE):
            raise refusal(ErrorCode.FORBIDDEN, "Only who may approve in a block decides about its calls.")
        if decision.scope != "once":
            sender.require_owner("permits more than one call")
        # Every check precedes the append, because a decision in the inbox cannot be withdrawn. The grant of a lasting
        # approval is built here, so that an impossible scope is refused, but the grant is not written yet. The inbox
        # then determines the first decision, by a message id that is derived from the question (ADR 0025). The grant is
        # written last: a grant written earlier would remain even if another person's denial was the first decision.
        #
        # After a crash behind the append, the decision counts, but its grant is missing and the person got no reply.
        # Repeating the decision writes the grant (``write_missed``). The monitor writes the audit line when it
        # publishes the settlement.
        decision = msgspec.structs.replace(decision, by=sender.identity.id)
        state = await self._turns.find(decision.turn)
        asked = state.question(decision.call) if state is not None else None
        if state is None or asked is None:
            raise refusal(ErrorCode.NOT_FOUND, "There is no such question.")
        rights.require(TokenScope.APPROVE, state.request.block)
        _check(decision, asked)
        if asked.detail is not msgspec.UNSET and asked.detail.owner_only:
            sender.require_administrator("decides about who may enter and what they may do")
        grant = self._grants.policy_for(decision, state, asked)
        first = False
        if not await self._is_same_decision(decision, asked, state):
            if state.finished is not None or state.cancelled is not None:
                raise ApprovalWithdrawn(state.cancelled)
            if asked.call_hash != decision.call_hash:
                raise refusal(
                    ErrorCode.CONFLICT,
                    "The call has changed since this question was shown. Show the approval again and decide about it.",
                )
            first = await self._append(decision, asked, state)
            if not first:
                await self._check_race(decision, asked)
        if grant is not None:
            await (self._grants.write(grant) if first else self._grants.write_missed(grant, asked))
        return None if first else AlreadyDecided(decision.allow, decision.by, question=asked.is_question)

    async def _check_race(self, decision: ApprovalDecided, request: ApprovalAsked) -> None:
        """Refuse with ``conflict`` after another decision won a race, unless it was the same decision."""
        state = await self._turns.find(decision.turn)
        if state is None or not await self._is_same_decision(decision, request, state):
            raise refusal(ErrorCode.CONFLICT, "This was decided already.")

    async def _is_same_decision(
        self, decision: ApprovalDecided, request: ApprovalAsked, state: TurnState
    ) -> bool:
        """Report whether the same person has already recorded the same decision, so that only the reply was
        lost.

        Raises AlreadyDecided when a different decision was recorded first.
        """
        first = await self._first_decision(decision, state)
        if first is None:
            return False
        if _decision_key(first) == _decision_key(decision):
            return True
        raise AlreadyDecided(first.allow, first.by, question=request.is_question)

    async def _first_decision(self, decision: ApprovalDecided, state: TurnState) -> ApprovalDecided | None:
        """Return the decision that counts: the recorded one, or the first one in the inbox. None when there
        is none."""
        recorded = state.decision(decision.call)
        if recorded is None:
            return await self._turns.queued_decision(decision, state.request.conversation)
        scope = "once" if isinstance(recorded.scope, msgspec.UnsetType) else recorded.scope
        answer = "" if isinstance(recorded.answer, msgspec.UnsetType) else recorded.answer
        return msgspec.structs.replace(
            decision, allow=recorded.allow, by=recorded.by, scope=scope, answer=answer
        )

    async def _append(self, decision: ApprovalDecided, request: ApprovalAsked, state: TurnState) -> bool:
        """Append the decision to the inbox. Return whether it is the first one."""
        about = state.request
        decision = msgspec.structs.replace(decision, lane=lane_of(about.trigger, about.lane))
        ack = await self._bus.append(
            INBOX,
            decision,
            scope=Scope(block=about.block, conversation=about.conversation, turn=about.turn),
            msg_id=key_of("decision", about.turn, decision.call, request.call_hash, str(request.asked_at)),
            timeout=ACCEPT_SECONDS,
            conversation=about.conversation,
        )
        return not ack.duplicate

    # Timers --------------------------------------------------------------------------------------------------

    async def run_timers(self) -> None:
        """Send reminders and deny approvals whose deadline has passed, until cancelled."""
        async with self._bus.pinned(DEADLINE_CONSUMER, APPROVAL_DUE) as deliveries:
            async for delivery in deliveries:
                try:
                    await self._due(delivery.data)
                    await delivery.ack()
                except BusError as error:
                    log.warning(
                        "the timer of approval %s waits until the bus answers: %s", delivery.data.id, error
                    )
                    await delivery.nak(RETRY_SECONDS)
                except Exception:  # one failing timer must not stop the timers of all other approvals
                    log.exception("the timer of approval %s failed; it is tried again", delivery.data.id)
                    await delivery.nak(RETRY_SECONDS)

    async def _due(self, due: ApprovalDue) -> None:
        if due.what == "remind":
            return await self._remind(due)
        state = await self._turns.find(due.turn)
        asked = state.question(due.call) if state is not None else None
        if state is None or asked is None or asked.asked_at != due.asked_at or state.finished is not None:
            return
        expired = ApprovalDecided(
            turn=due.turn, call=due.call, call_hash=asked.call_hash, allow=False, by=DECIDED_BY_DEADLINE
        )
        try:
            if not await self._is_same_decision(expired, asked, state):
                await self._append(expired, asked, state)
        except Refusal:
            log.debug("approval %s was decided in time", due.id)

    async def _remind(self, due: ApprovalDue) -> None:
        last = await self._bus.last(APPROVAL, approval=due.id)
        if last is None or last.data.settled is not None or last.data.reminded_at is not None:
            return
        reminded = msgspec.structs.replace(last.data, reminded_at=utc_now())
        scope = Scope(block=reminded.block, conversation=reminded.conversation, turn=reminded.turn)
        try:
            await self._bus.append(APPROVAL, reminded, scope=scope, expect=last.seq, approval=due.id)
        except SequenceConflict:
            log.debug("approval %s was decided meanwhile", due.id)


def _is_open(approval: Approval) -> bool:
    """Report whether a person can still decide. An approval whose deadline passed while no worker ran is
    settled later."""
    return approval.settled is None and approval.expires_at > utc_now()


def _check(decision: ApprovalDecided, request: ApprovalAsked) -> None:
    """Refuse an empty answer to a question, and an answer where only allow or deny is expected."""
    if decision.answer and not (request.is_question and decision.allow):
        raise InvalidField(("answer",), "This approval takes allow or deny, and no answer in words.")
    if request.is_question and decision.allow and not decision.answer.strip():
        raise InvalidField(("answer",), "This is a question: it needs an answer in words.")
    if len(decision.answer) > MAX_ANSWER_CHARS:
        raise refusal(ErrorCode.TOO_LARGE, f"An answer has {MAX_ANSWER_CHARS} characters at most.")


def _decision_key(decision: ApprovalDecided) -> tuple[bool, str, str, str]:
    return decision.allow, decision.by, decision.scope, decision.answer
