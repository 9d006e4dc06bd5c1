"""The state and the message of a turn, read from the records of its journal. Pure functions."""

from trunkline.contracts.turns.journal_messages import JournalEntry, TurnRecord, TurnStarted
from trunkline.contracts.turns.messages import InboxItem, TurnRequested, TurnSteered
from trunkline.workers.monitor.turn import Phase, Turn


def replay_turn(records: list[TurnRecord]) -> Turn:
    """Return the turn that these records lead to. Raises TurnProtocolError when they make no sense."""
    turn = Turn()
    for record in records:
        for entry in record.entries:
            turn.apply(entry)
    return turn


def is_too_late(turn: Turn, steered: TurnSteered) -> bool:
    """Report whether the turn ended, or never existed, without having taken the message in."""
    if turn.phase is Phase.NEW:
        return True
    return turn.phase is Phase.DONE and not turn.has_message(steered.request.message.id)


def requested_by(records: list[TurnRecord], item: InboxItem) -> TurnRequested | None:
    """Return the message that the turn answers; None for a control item about an unknown turn."""
    return find_request([entry for record in records[:1] for entry in record.entries[:1]], item)


def find_request(entries: list[JournalEntry], item: InboxItem) -> TurnRequested | None:
    """Return the message that the turn answers, from its entries or from the item; None if neither has it."""
    started = [entry.request for entry in entries if isinstance(entry, TurnStarted)]
    return started[0] if started else item if isinstance(item, TurnRequested) else None
