"""A running turn's mailbox: cancels, steering and decisions for it, as they come."""

from collections import deque
from collections.abc import Callable

import msgspec

from trunkline.contracts.turns.messages import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalRecorded,
    CancelRecorded,
    InboxItem,
    JournalEntry,
    SteerRecorded,
    TurnCancelRequested,
    TurnRequested,
    TurnSteered,
)
from trunkline.policy.turn_permissions import initial_permissions
from trunkline.workers.monitor.claimed_item import ClaimedItem
from trunkline.workers.monitor.turn import Turn


class TurnMailbox:
    """Holds what is for one turn until its runner has settled it: what a failed run had taken is still in here."""

    def __init__(self, turn: str) -> None:
        self._turn = turn
        self._items: deque[ClaimedItem] = deque()
        self._taken: list[ClaimedItem] = []
        self._on_put: Callable[[], None] = lambda: None

    def put(self, held: ClaimedItem) -> bool:
        """Take the item if it is for this turn."""
        if isinstance(held.item, TurnRequested) or held.item.turn != self._turn:
            return False
        self._items.append(held)
        self._on_put()
        return True

    def take_cancels(self) -> list[ClaimedItem]:
        """Take out the cancels, so that they are heeded before anything is begun."""
        found = [held for held in self._items if isinstance(held.item, TurnCancelRequested)]
        for held in found:
            self._items.remove(held)
        self._taken.extend(found)
        return found

    def watch(self, on_put: Callable[[], None]) -> None:
        """Be told of every item, now of those that wait."""
        self._on_put = on_put
        for _ in self._items:
            on_put()

    def take(self) -> ClaimedItem | None:
        """The next item."""
        if not self._items:
            return None
        self._taken.append(self._items.popleft())
        return self._taken[-1]

    def settle(self, held: ClaimedItem) -> None:
        """The journal has what became of the item."""
        if held in self._taken:
            self._taken.remove(held)

    def unsettled(self) -> list[ClaimedItem]:
        """What was not settled: it came too late for the turn, or the run failed before."""
        return [*self._taken, *self._items]


def is_immediate_cancel(item: InboxItem) -> bool:
    """Report whether the item ends its turn at once, whatever is under way."""
    return isinstance(item, TurnCancelRequested) and item.mode == "now"


def journal_entry_for(held: ClaimedItem, turn: Turn) -> JournalEntry | None:
    """What a control item means to the turn; None when it means nothing (a decision about another call)."""
    match held.item:
        case TurnCancelRequested(by=by, mode=mode, of_block=of_block):
            return CancelRecorded(by=by, mode=mode, of_block=of_block)
        case TurnSteered(request=request):
            return None if turn.has_message(request.message.id) else _steered(request)
        case ApprovalDecided() as decision:
            return _decision(decision, turn)
        case _:
            return None


def _steered(request: TurnRequested) -> SteerRecorded:
    return SteerRecorded(message=request.message, permissions=initial_permissions(request).scopes)


def _decision(decision: ApprovalDecided, turn: Turn) -> ApprovalRecorded | None:
    """A decision holds for exactly the call that it names, as it was shown: the hash binds tool and arguments."""
    action = turn.steps[-1].waiting.get(decision.call) if turn.steps else None
    asked = None if action is None else action.asked
    return _recorded(decision, asked) if asked and asked.call_hash == decision.call_hash else None


def _recorded(decision: ApprovalDecided, asked: ApprovalAsked) -> ApprovalRecorded | None:
    """None for an answer to what is no question, and for a yes to what is one."""
    if decision.allow and bool(decision.answer) != asked.is_question:
        return None
    return ApprovalRecorded(
        call_id=asked.call_id,
        allow=decision.allow,
        by=decision.by,
        scope=msgspec.UNSET if decision.scope == "once" else decision.scope,
        answer=decision.answer or msgspec.UNSET,
    )
