"""Reads the audit log: the daily files in memory, and the newer entries on the stream."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import anyio
import msgspec

from trunkline._util.local_time import local_to_utc
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.memory.files import ListMemory, ReadMemory
from trunkline.contracts.memory.operation import CALL_SECONDS
from trunkline.contracts.memory.subjects import MEMORY_LIST, MEMORY_READ
from trunkline.errors import ConfigError
from trunkline.runtime.audit_log import stored_entries
from trunkline_bus import Bus, RemoteFault

POLL_SECONDS = 0.5
"""Seconds between two reads of new entries."""

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DAY = re.compile(r"audit/(\d{4}-\d\d-\d\d)\.jsonl")


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of audit entries. A field that is None matches any entry."""

    since: datetime
    block: str | None = None
    tool: str | None = None
    effect: str | None = None
    event: str | None = None
    decision: str | None = None

    def matches(self, entry: AuditEntry) -> bool:
        """Report whether the entry matches."""
        named = ("block", "tool", "effect", "event", "decision")
        conditions = ((getattr(self, name), getattr(entry, name)) for name in named)
        return entry.at >= self.since and all(wanted in (None, actual) for wanted, actual in conditions)


def parse_since(text: str) -> datetime:
    """Parse ``30m``, ``2h``, ``7d``, or a date, which is local without an offset. Raises ConfigError."""
    try:
        if found := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(seconds=int(found[1]) * _UNITS[found[2]])
        return local_to_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text!r} is not a time.", hint="Say 30m, 2h, 7d, or a date such as 2026-11-22."
        ) from None


async def read_entries(bus: Bus, filters: AuditFilter) -> list[AuditEntry]:
    """Return the entries, oldest first."""
    found: dict[str, AuditEntry] = {}
    for path in await _files(bus, filters.since.date()):
        text = (await bus.call(MEMORY_READ, ReadMemory(path=path), timeout=CALL_SECONDS)).content
        found |= {entry.id: entry for entry in map(_entry, text.splitlines()) if entry is not None}
    async for _, entry in stored_entries(bus):
        if entry is not None:
            found.setdefault(entry.id, entry)
    return sorted(filter(filters.matches, found.values()), key=lambda entry: (entry.at, entry.id))


async def follow_entries(bus: Bus, filters: AuditFilter, shown: set[str]) -> AsyncIterator[AuditEntry]:
    """Yield entries of the stream that were not shown yet, and new entries as they are recorded."""
    position = 0
    while True:
        async for seq, entry in stored_entries(bus, after=position):
            position = seq
            if entry is not None and filters.matches(entry) and entry.id not in shown:
                yield entry
        await anyio.sleep(POLL_SECONDS)


async def _files(bus: Bus, first: date) -> list[str]:
    try:
        listing = await bus.call(MEMORY_LIST, ListMemory(path="audit"), timeout=CALL_SECONDS)
    except RemoteFault as fault:
        if fault.code == "not_found":
            return []
        raise
    days = ((_DAY.fullmatch(entry.path), entry.path) for entry in listing.entries)
    return sorted(path for day, path in days if day and date.fromisoformat(day[1]) >= first)


def _entry(line: str) -> AuditEntry | None:
    try:
        return msgspec.json.decode(line, type=AuditEntry)
    except msgspec.MsgspecError:
        return None
