"""The due times of a schedule. Pure: the caller names the time.

A cron line whose hour is ``*`` is due in every hour that passes, also in the hour that daylight saving repeats. Any
other cron line means times on the clock, each of which is due once: a time that the clock repeats at its first
occurrence, and a time that the clock skips when it is put forward.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim

from trunkline_pulse.schedule import Schedule
from trunkline_pulse.zones import instant_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST_SHIFT = timedelta(hours=26)
"""Longer than any change of a clock."""


def next_due(schedule: Schedule, after: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the first due time after an instant, in UTC; None if there is none. ``zone`` is that of schedules that
    name none.
    """
    return next(_dues(schedule, after, zone), None)


def next_dues(schedule: Schedule, after: datetime, zone: ZoneInfo, count: int) -> list[datetime]:
    """Return the first due times after an instant, at most ``count``."""
    return list(islice(_dues(schedule, after, zone), count))


def dues_between(
    schedule: Schedule, first: datetime, last: datetime, zone: ZoneInfo, limit: int
) -> list[datetime]:
    """Return the due times from ``first`` to ``last``, both included, at most ``limit``."""
    dues = _dues(schedule, first - timedelta(microseconds=1), zone)
    return list(islice(takewhile(lambda due: due <= last, dues), limit))


def jittered(schedule: Schedule, key: str, due: datetime) -> datetime:
    """Return when the run of a due time begins. The delay depends on ``key`` and the due time only."""
    if not schedule.jitter:
        return due
    number = int.from_bytes(sha256(f"{key} {due.isoformat()}".encode()).digest()[:8], "big")
    return due + timedelta(seconds=schedule.jitter * number / 2**64)


def _dues(schedule: Schedule, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    expires = schedule.instant(schedule.expires, zone) if schedule.expires else None
    start = schedule.instant(schedule.start, zone).astimezone(UTC) if schedule.start else None
    if start is not None and after < start:
        after = start - timedelta(microseconds=1)
    after = after.astimezone(UTC)
    if schedule.cron:
        found = _cron_dues(schedule.cron, after, schedule.zone(zone))
    elif schedule.every:
        found = _interval_dues(schedule.every, after, start or EPOCH)
    else:
        found = _single_due(schedule, after, zone)
    return found if expires is None else takewhile(lambda due: due < expires, found)


def _cron_dues(line: str, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    if line.split()[-4] in ("*", "*/1"):
        yield from (due.astimezone(UTC) for due in CronSim(line, after.astimezone(zone)))
        return
    previous = after
    begin = after.astimezone(zone).replace(tzinfo=None) - LARGEST_SHIFT
    for local in CronSim(line, begin):
        due = instant_of(local, zone)
        if due > previous:
            previous = due
            yield due


def _interval_dues(every: int, after: datetime, anchor: datetime) -> Iterator[datetime]:
    number = max((after - anchor) // timedelta(seconds=every) + 1, 0)
    while True:
        yield anchor + timedelta(seconds=every * number)
        number += 1


def _single_due(schedule: Schedule, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    if schedule.at is not None:
        due = schedule.instant(schedule.at, zone).astimezone(UTC)
        if due > after:
            yield due
