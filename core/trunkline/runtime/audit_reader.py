"""Reads and filters the entries of the audit log."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

import anyio

from trunkline.contracts.audit.messages import AuditEntry
from trunkline.runtime.daily_log import AUDIT_LOG
from trunkline.runtime.daily_log_reader import read_daily_log
from trunkline_bus import Bus

POLL_SECONDS = 0.5
"""Seconds between two reads of new entries."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of audit entries: from ``since`` on and before ``until``. A field that is None matches any entry."""

    since: datetime
    block: str | None = None
    tool: str | None = None
    effect: str | None = None
    event: str | None = None
    decision: str | None = None
    until: datetime | None = None

    def matches(self, entry: AuditEntry) -> bool:
        """Report whether the entry matches."""
        named = ("block", "tool", "effect", "event", "decision")
        conditions = ((getattr(self, name), getattr(entry, name)) for name in named)
        is_within = self.since <= entry.at and (self.until is None or entry.at < self.until)
        return is_within and all(wanted in (None, actual) for wanted, actual in conditions)


async def read_entries(bus: Bus, filters: AuditFilter) -> list[AuditEntry]:
    """Return the entries, oldest first."""
    entries = await read_daily_log(bus, AUDIT_LOG, filters.since, filters.until)
    found = {
        entry.id: entry for entry in reversed(entries)
    }  # a purge changes the line in memory, which comes first
    return sorted(filter(filters.matches, found.values()), key=lambda entry: (entry.at, entry.id))


async def follow_entries(bus: Bus, filters: AuditFilter, shown: set[str]) -> AsyncIterator[AuditEntry]:
    """Yield entries of the stream that were not shown yet, and new entries as they are recorded."""
    position = 0
    while True:
        async for seq, entry in AUDIT_LOG.stored(bus, after=position):
            position = seq
            if entry is not None and filters.matches(entry) and entry.id not in shown:
                yield entry
        await anyio.sleep(POLL_SECONDS)
