"""Copies the audit log, the cost ledger and the events of budgets from their streams into memory: one file for each
day, one line for each entry, many lines in each commit.

The streams store every entry first. A file in the cache folder records the sequence of the last copied entry of each
log. If that file is lost, the entries that are already in memory are recognised by their ids.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from trunkline.contracts.memory.store import Change, MemoryStore
from trunkline.runtime.audit_log import new_entry
from trunkline.runtime.daily_log import AUDIT_LOG, BUDGET_LOG, COST_LEDGER, DailyLog
from trunkline_bus import Bus, BusError, Refusal

log = logging.getLogger(__name__)

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


class LogWriter:
    """Copies all logs. ``cache`` is the folder of the recorded sequences."""

    def __init__(self, store: MemoryStore, bus: Bus, cache: Path) -> None:
        self._logs = (
            _DailyLogWriter(AUDIT_LOG, store, bus, cache / "audit.seq", _lost_audit_entries),
            _DailyLogWriter(COST_LEDGER, store, bus, cache / "costs.seq", _nothing),
            _DailyLogWriter(BUDGET_LOG, store, bus, cache / "budgets.seq", _nothing),
        )

    async def run(self) -> None:
        """Copy new entries periodically until cancelled. Failures are logged and the copy is repeated."""
        async with anyio.create_task_group() as tasks:
            for one in self._logs:
                tasks.start_soon(one.run)

    async def write_pending(self) -> None:
        """Copy all new entries. Raises BusError, Refusal or OSError."""
        for one in self._logs:
            await one.write_pending()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Copy nothing while the block runs."""
        async with AsyncExitStack() as stack:
            for one in self._logs:
                await stack.enter_async_context(one.lock)
            yield


class _DailyLogWriter:
    """Copies the entries of one log into the store. ``note`` is the file with the sequence of the last copied entry.
    ``lost`` returns the entries that say how many were lost, and why.
    """

    def __init__(
        self,
        source: DailyLog[Any],
        store: MemoryStore,
        bus: Bus,
        note: Path,
        lost: Callable[[int, str], tuple[Any, ...]],
    ) -> None:
        self._source = source
        self._store = store
        self._bus = bus
        self._note = note
        self._lost_entries = lost
        self._position: int | None = None
        self._keys_by_file: dict[str, set[LineKey]] = {}
        self._size = 0
        self.lock = anyio.Lock()

    async def run(self) -> None:
        while True:
            await anyio.sleep(COMMIT_INTERVAL + self._size / BYTES_PER_EXTRA_SECOND)
            try:
                await self.write_pending()
            except (BusError, Refusal, OSError) as error:
                log.error("the %s cannot be written into memory now: %s", self._source.name, error)

    async def write_pending(self) -> None:
        async with self.lock:
            while await self._write_batch():
                continue

    async def _write_batch(self) -> bool:
        """Copy the next entries. Return True if there may be more."""
        position = await self._last_written()
        entries: list[Any] = []
        count, undecodable = 0, 0
        async for seq, entry in self._source.stored(self._bus, after=position):
            if position and not count and seq > position + 1:
                entries.extend(self._lost(seq - position - 1, DELETED))
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
            entries.extend(self._lost(undecodable, UNDECODABLE))
        await self._append(entries, count)
        self._position = position
        await anyio.Path(self._note).write_text(str(position))
        return count == BATCH

    async def _append(self, entries: list[Any], count: int) -> None:
        """Append the entries to their files in one commit."""
        if not entries:
            return
        by_file: dict[str, list[Any]] = {}
        for entry in entries:
            by_file.setdefault(self._source.file_of(entry), []).append(entry)
        files = {path: await self._appended(path, lines) for path, lines in by_file.items()}
        folder = self._source.folder
        await self._store.change(Change(dict(files), actor=folder, reason=f"{folder}: {count} lines"))
        self._keys_by_file = {  # only the keys of the present days are held, because a worker runs for months
            path: self._keys_by_file[path] | set(map(_key_of, lines)) for path, lines in by_file.items()
        }
        self._size = max(map(len, files.values()))

    def _lost(self, count: int, why: str) -> tuple[Any, ...]:
        log.error("%s: %d %s", self._source.name, count, why)
        return self._lost_entries(count, why)

    async def _last_written(self) -> int:
        """Return the sequence of the last copied entry; 0 if the stream has been created anew since then."""
        if self._position is None:
            self._position = await anyio.to_thread.run_sync(_read_position, self._note)
        if await self._bus.last_seq(self._source.topic) < self._position:
            self._position = 0
        return self._position

    async def _appended(self, path: str, entries: list[Any]) -> bytes:
        """Return the file with the entries appended that it does not have yet."""
        try:
            before = (await self._store.read(path)).content
        except Refusal as refusal:
            if refusal.code != "not_found":
                raise
            before = ""
        known = self._keys_by_file.get(path)
        if known is None:
            known = self._keys_by_file[path] = keys_in(before)
        new = [entry for entry in entries if _key_of(entry) not in known]
        return before.encode() + b"".join(msgspec.json.encode(entry) + b"\n" for entry in new)


def _lost_audit_entries(count: int, why: str) -> tuple[Any, ...]:
    return (new_entry(event="lost", block="all", actor=AUDIT_LOG.folder, why=why, count=count),)


def _nothing(count: int, why: str) -> tuple[Any, ...]:
    return ()


class LineKey(msgspec.Struct, frozen=True):
    """The identity of a line. A request may have two lines in the cost ledger, which differ in their status."""

    id: str
    status: str = ""


def _key_of(entry: Any) -> LineKey:
    return LineKey(entry.id, getattr(entry, "status", ""))


def keys_in(text: str) -> set[LineKey]:
    """Return the keys of the lines of a file. A line that is not an entry is ignored."""
    found = set()
    for line in text.split("\n"):
        try:
            found.add(msgspec.json.decode(line, type=LineKey))
        except msgspec.MsgspecError:
            continue
    return found


def _read_position(note: Path) -> int:
    try:
        return int(note.read_text())
    except (OSError, ValueError):
        return 0
