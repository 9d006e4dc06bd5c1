"""Copies the audit log from its stream into memory: ``audit/YYYY-MM-DD.jsonl``, one line for each entry, many lines in
each commit.

The stream stores every entry first. A file in the cache folder records the sequence of the last copied entry. If that
file is lost, the entries that are already in memory are recognised by their ids.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.memory.store import Change, MemoryStore
from trunkline.runtime.audit_log import new_entry, stored_entries
from trunkline_bus import Bus, BusError, Refusal

log = logging.getLogger(__name__)

FOLDER = "audit"
ACTOR = "audit"
COMMIT_INTERVAL = 10.0
"""Seconds between two commits while the day's file is small. Each commit writes the whole file, so the interval grows
with the file.
"""

BYTES_PER_EXTRA_SECOND = 100_000
"""The size of the day's file, in bytes, that adds one second to the interval."""

BATCH = 5_000

DELETED = (
    "lines were not on the stream any more when memory was to have them: purged, or the stream was full."
)
UNDECODABLE = "lines on the stream could not be decoded. They stay on the stream until they expire."


class AuditLogWriter:
    """Copies the entries of the stream into the store. ``note`` is the file with the sequence of the last
    copied entry.
    """

    def __init__(self, store: MemoryStore, bus: Bus, note: Path) -> None:
        self._store = store
        self._bus = bus
        self._note = note
        self._position: int | None = None
        self._ids_by_day: dict[str, set[str]] = {}
        self._size = 0
        self._lock = anyio.Lock()

    async def run(self) -> None:
        """Copy new entries periodically until cancelled. Failures are logged and the copy is repeated."""
        while True:
            await anyio.sleep(COMMIT_INTERVAL + self._size / BYTES_PER_EXTRA_SECOND)
            try:
                await self.write_pending()
            except (BusError, Refusal, OSError) as error:
                log.error("the audit log cannot be written into memory now: %s", error)

    async def write_pending(self) -> None:
        """Copy all new entries. Raises BusError, Refusal or OSError."""
        async with self._lock:
            while await self._write_batch():
                continue

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Copy nothing while the block runs."""
        async with self._lock:
            yield

    async def _write_batch(self) -> bool:
        """Copy the next entries. Return True if there may be more."""
        position = await self._last_written()
        entries: list[AuditEntry] = []
        count, undecodable = 0, 0
        async for seq, entry in stored_entries(self._bus, after=position):
            if position and not count and seq > position + 1:
                entries.append(_loss_entry(seq - position - 1, DELETED))
            if entry is None:
                undecodable += 1
            else:
                entries.append(entry)
            position, count = seq, count + 1
            if count == BATCH:
                break
        if not count:
            return False
        if undecodable:
            entries.append(_loss_entry(undecodable, UNDECODABLE))
        lines: dict[str, list[AuditEntry]] = {}
        for entry in entries:
            lines.setdefault(_day_file(entry), []).append(entry)
        files = {day: await self._appended(day, entries) for day, entries in lines.items()}
        await self._store.change(Change(dict(files), actor=ACTOR, reason=f"audit: {count} lines"))
        self._ids_by_day = {  # only the ids of the present days are held, because a worker runs for months
            day: self._ids_by_day[day] | {entry.id for entry in entries} for day, entries in lines.items()
        }
        self._size = max(map(len, files.values()))
        self._position = position
        await anyio.Path(self._note).write_text(str(position))
        return count == BATCH

    async def _last_written(self) -> int:
        """Return the sequence of the last copied entry; 0 if the stream has been created anew since then."""
        if self._position is None:
            self._position = await anyio.to_thread.run_sync(_read_position, self._note)
        if await self._bus.last_seq(AUDIT) < self._position:
            self._position = 0
        return self._position

    async def _appended(self, day: str, entries: list[AuditEntry]) -> bytes:
        """Return the day's file with the entries appended that it does not have yet."""
        try:
            before = (await self._store.read(day)).content
        except Refusal as refusal:
            if refusal.code != "not_found":
                raise
            before = ""
        known = self._ids_by_day.get(day)
        if known is None:
            known = self._ids_by_day[day] = ids_in(before)
        new = [entry for entry in entries if entry.id not in known]
        return before.encode() + b"".join(msgspec.json.encode(entry) + b"\n" for entry in new)


def _day_file(line: AuditEntry) -> str:
    return f"{FOLDER}/{line.at:%Y-%m-%d}.jsonl"


def _loss_entry(count: int, why: str) -> AuditEntry:
    log.error("%d %s", count, why)
    return new_entry(event="lost", block="all", actor=ACTOR, why=why, count=count)


class _EntryId(msgspec.Struct):
    id: str


def ids_in(text: str) -> set[str]:
    """Return the ids of the lines of a file. A line that is not an entry is ignored."""
    found = set()
    for line in text.split("\n"):
        try:
            found.add(msgspec.json.decode(line, type=_EntryId).id)
        except msgspec.MsgspecError:
            continue
    return found


def _read_position(note: Path) -> int:
    try:
        return int(note.read_text())
    except (OSError, ValueError):
        return 0
