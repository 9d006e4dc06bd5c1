"""The history that a model receives: a summary in place of the first messages. A pure function of the stored messages
and of the summary record that the turn's journal names (ADR 31, 71)."""

from collections.abc import Sequence

from trunkline._util.untrusted_text import wrap_context
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.conversations.summary_record import SummaryRecord


def covers(record: SummaryRecord | None, history: Sequence[Message]) -> bool:
    """Report whether the messages of the record are the first messages of the history."""
    return (
        record is not None
        and 0 < record.count <= len(history)
        and history[record.count - 1].id == record.through
    )


def summarised_history(history: Sequence[Message], record: SummaryRecord | None) -> tuple[Message, ...]:
    """Return the summary and the messages after it; the history itself without a record of it."""
    if record is None or not covers(record, history):
        return tuple(history)
    return (_summary_message(record), *history[record.count :])


def _summary_message(record: SummaryRecord) -> Message:
    """Return the summary as data: parts of it come from tools and pages, and it permits nothing."""
    source = f"summary of the first {record.count} messages of this conversation"
    return Message(
        id=record.id,
        role="user",
        content=wrap_context(source, record.text),
        created_at=record.created_at,
    )
