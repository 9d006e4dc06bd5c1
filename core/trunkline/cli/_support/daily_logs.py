"""Reads the audit log and the cost ledger: the daily files in memory, and the newer entries on the stream."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

import msgspec

from trunkline._util.local_time import local_to_utc
from trunkline.contracts.memory.files import ListMemory, ReadMemory
from trunkline.contracts.memory.operation import CALL_SECONDS
from trunkline.contracts.memory.subjects import MEMORY_LIST, MEMORY_READ
from trunkline.errors import ConfigError
from trunkline.runtime.daily_log import DailyLog
from trunkline_bus import Bus, RemoteFault

T = TypeVar("T")

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DAY = re.compile(r"[a-z]+/(\d{4}-\d\d-\d\d)\.jsonl")


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


async def read_daily_log(bus: Bus, log: DailyLog[T], since: datetime) -> list[T]:
    """Return the entries of the days from ``since`` on, and all that the stream has, in the order of recording.
    Entries that are in memory and on the stream appear twice.
    """
    decoder = msgspec.json.Decoder(log.topic.payload)
    found: list[T] = []
    for path in await _files(bus, log.folder, since.date()):
        text = (await bus.call(MEMORY_READ, ReadMemory(path=path), timeout=CALL_SECONDS)).content
        found += _decoded(decoder, text)
    return [*found, *[entry async for _, entry in log.stored(bus) if entry is not None]]


async def _files(bus: Bus, folder: str, first: date) -> list[str]:
    try:
        listing = await bus.call(MEMORY_LIST, ListMemory(path=folder), timeout=CALL_SECONDS)
    except RemoteFault as fault:
        if fault.code == "not_found":
            return []
        raise
    days = ((_DAY.fullmatch(entry.path), entry.path) for entry in listing.entries)
    return sorted(path for day, path in days if day and date.fromisoformat(day[1]) >= first)


def _decoded(decoder: msgspec.json.Decoder[T], text: str) -> list[T]:
    """Return the entries of a file. A line that is no entry is ignored."""
    entries = []
    for line in text.splitlines():
        try:
            entries.append(decoder.decode(line))
        except msgspec.MsgspecError:
            continue
    return entries
