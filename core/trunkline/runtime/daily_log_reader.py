"""Reads the audit log and the cost ledger: the daily files in memory, and the newer entries on the stream."""

import re
from datetime import UTC, date, datetime
from typing import TypeVar

import msgspec

from trunkline.contracts.memory.bus_transport import read_files
from trunkline.contracts.memory.files import ListMemory
from trunkline.contracts.memory.operation import CALL_SECONDS
from trunkline.contracts.memory.subjects import MEMORY_LIST
from trunkline.runtime.daily_log import DailyLog
from trunkline_bus import Bus, RemoteFault

T = TypeVar("T")

_DAY = re.compile(r"[a-z]+/(\d{4}-\d\d-\d\d)\.jsonl")


async def read_daily_log(
    bus: Bus, log: DailyLog[T], since: datetime, until: datetime | None = None
) -> list[T]:
    """Return the entries of the days from ``since`` to ``until``, and all that the stream has, in the order of
    recording. Entries that are in memory and on the stream appear twice.
    """
    first = since.astimezone(UTC).date()
    last = date.max if until is None else until.astimezone(UTC).date()
    decoder = msgspec.json.Decoder(log.topic.payload)
    found: list[T] = []
    for path in await _files(bus, log.folder, first, last):
        for file in await read_files(bus, (path,)):  # one by one, because a day may be long
            found += _decoded(decoder, file.content)
    return [*found, *[entry async for _, entry in log.stored(bus) if entry is not None]]


async def _files(bus: Bus, folder: str, first: date, last: date) -> list[str]:
    try:
        listing = await bus.call(MEMORY_LIST, ListMemory(path=folder), timeout=CALL_SECONDS)
    except RemoteFault as fault:
        if fault.code == "not_found":
            return []
        raise
    days = ((_DAY.fullmatch(entry.path), entry.path) for entry in listing.entries)
    return sorted(path for day, path in days if day and first <= date.fromisoformat(day[1]) <= last)


def _decoded(decoder: msgspec.json.Decoder[T], text: str) -> list[T]:
    """Return the entries of a file. A line that is no entry is ignored."""
    entries = []
    for line in text.splitlines():
        try:
            entries.append(decoder.decode(line))
        except msgspec.MsgspecError:
            continue
    return entries
