"""The mailbox of a running turn: its cancels, steering messages and decisions in the order of arrival."""

from collections import deque
from collections.abc import Callable

import msgspec

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.journal_messages import (
    AgentReportRecorded,
    ApprovalAsked,
    ApprovalRecorded,
    CancelRecorded,
    JournalEntry,
    SteerRecorded,
)
from trunkline.contracts.turns.lanes import Lane, lane_of
from trunkline.contracts.turns.messages import (
    AgentReported,
    ApprovalDecided,
    InboxItem,
    TurnCancelRequested,
    TurnRequested,
    TurnSteered,
)
from trunkline.policy.turn_permissions import initial_permissions
from trunkline.workers.monitor.claimed_item import ClaimedItem
from trunkline.workers.monitor.turn import Turn


class TurnMailbox:
    """Keeps the items for one turn until its runner has settled them, so that a failed run loses none."""

    def __init__(self, turn: str) -> None:
        self._turn = turn
        self._items: deque[ClaimedItem] = deque()
        self._taken: list[ClaimedItem] = []
        self._on_put: Callable[[], None] = lambda: None

    def put(self, claimed: ClaimedItem) -> bool:
        """Add the item if it concerns this turn; return whether it was added."""
        if isinstance(claimed.item, TurnRequested) or claimed.item.turn != self._turn:
            return False
        self._items.append(claimed)
        self._on_put()
        return True

    def take_controls(self) -> list[ClaimedItem]:
        """Remove and return the cancels and decisions, so that they apply before the run starts any work."""
        found = [claimed for claimed in self._items if is_control_item(claimed.item)]
        for claimed in found:
            self._items.remove(claimed)
        self._taken.extend(found)
        return found

    def watch(self, on_put: Callable[[], None]) -> None:
        """Call ``on_put`` once for each waiting item now, and for each item that is added later."""
        self._on_put = on_put
        for _ in self._items:
            on_put()

    def take(self) -> ClaimedItem | None:
        """Remove and return the next item; None when there is none."""
        if not self._items:
            return None
        self._taken.append(self._items.popleft())
        return self._taken[-1]

    def settle(self, claimed: ClaimedItem) -> None:
        """Remove an item whose effect is recorded in the journal."""
        if claimed in self._taken:
            self._taken.remove(claimed)

    def unsettled(self) -> list[ClaimedItem]:
        """Return the items that were not settled: they arrived too late for the turn, or the run failed before."""
        return [*self._taken, *self._items]


def is_immediate_cancel(item: InboxItem) -> bool:
    """Report whether the item ends its turn at once, including running work."""
    return isinstance(item, TurnCancelRequested) and item.mode == "now"


def is_control_item(item: InboxItem) -> bool:
    """Report whether the item is a person's decision about a call or the cancel of a turn."""
    return isinstance(item, ApprovalDecided | TurnCancelRequested)


def item_lane(item: InboxItem) -> Lane | None:
    """Return the lane in which an item's turn waits; None for an item that does not say. A person waits for what
    follows a decision, and the lane of a report is that of its turn; both are unset in a record of an earlier version.
    """
    match item:
        case (
            TurnRequested(trigger=trigger, lane=lane)
            | TurnSteered(request=TurnRequested(trigger=trigger, lane=lane))
        ):
            return lane_of(trigger, lane)
        case ApprovalDecided(lane=lane) | AgentReported(lane=lane):
            return "interactive" if isinstance(lane, msgspec.UnsetType) else lane
        case _:
            return None


def journal_entry_for(claimed: ClaimedItem, turn: Turn) -> JournalEntry | None:
    """Return the journal entry of a control item; None when the item has no effect, such as a decision about another
    call."""
    match claimed.item:
        case TurnCancelRequested(by=by, mode=mode, of_block=of_block):
            return CancelRecorded(by=by, mode=mode, of_block=of_block)
        case TurnSteered(request=request):
            return None if turn.has_message(request.message.id) else _steered(request)
        case ApprovalDecided() as decision:
            return _decision(decision, turn)
        case AgentReported() as reported:
            return _report(reported, turn)
        case _:
            return None


def _steered(request: TurnRequested) -> SteerRecorded:
    return SteerRecorded(message=request.message, permissions=initial_permissions(request).scopes)


def _decision(decision: ApprovalDecided, turn: Turn) -> ApprovalRecorded | None:
    """Return the entry of a decision. A decision applies only to the call that was shown: the hash binds tool and
    arguments."""
    action = turn.steps[-1].waiting.get(decision.call) if turn.steps else None
    asked = None if action is None else action.request
    return _recorded(decision, asked) if asked and asked.call_hash == decision.call_hash else None


def _report(reported: AgentReported, turn: Turn) -> AgentReportRecorded | None:
    """Return the entry of the result of a task; None if its call has ended, or has the result already."""
    action = next((one for one in turn.actions if one.key == reported.call), None)
    if action is None or not action.open:
        return None
    known = reported.report.task in {one.task for one in action.reports}
    return None if known else AgentReportRecorded(call_id=action.call.id, report=reported.report)


def _recorded(decision: ApprovalDecided, request: ApprovalAsked) -> ApprovalRecorded | None:
    """Return the entry; None for an answer to a call that asked no question, and for an approval of a question without
    an answer."""
    if decision.allow and bool(decision.answer) != request.is_question:
        return None
    return ApprovalRecorded(
        call_id=request.call_id,
        allow=decision.allow,
        by=decision.by,
        scope=msgspec.UNSET if decision.scope == "once" else decision.scope,
        answer=decision.answer or msgspec.UNSET,
        decided_at=utc_now(),
    )
