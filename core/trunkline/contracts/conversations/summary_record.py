"""Summary records: a summary that replaces the first messages of a conversation in requests to models. The messages
stay stored, and a record can be withdrawn (ADR 71).
"""

from datetime import datetime

import msgspec

MAX_RECORDS = 8
"""The number of a conversation's records that are stored, the newest. An older one cannot be returned to."""


class SummaryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary of the first ``count`` messages of a conversation; ``through`` is the id of the last one of them.

    ``text`` contains what ``previous`` (the id of the record before it, "" for none) told, too. ``model`` wrote it
    (``adapter/model``). ``turn`` is the turn after which, or in which, it was made. ``focus`` is what the person asked
    to keep.
    """

    id: str
    text: str
    through: str
    count: int
    model: str
    created_at: datetime
    turn: str
    previous: str = ""
    focus: str = ""


def changed_records(
    records: tuple[SummaryRecord, ...], added: SummaryRecord | None, withdrawn: str | None
) -> tuple[SummaryRecord, ...]:
    """Return a conversation's records after a change. The last record is the one in effect.

    A record is added if it follows the one in effect (``previous``), so that of two that were made at the same time one
    is stored. A record is withdrawn if it is the one in effect. Any other change does nothing, so a change may be
    repeated.
    """
    current = records[-1].id if records else ""
    if added is not None and added.previous == current:
        return (*records, added)[-MAX_RECORDS:]
    if withdrawn is not None and withdrawn == current:
        return records[:-1]
    return records
