"""Time zones, and the instants of local times that daylight saving skips or repeats. Pure."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo


def find_zone(name: str) -> ZoneInfo | None:
    """Return the time zone of this name; None if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return None


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant of a local time without a zone, in UTC.

    A local time that the clock repeats means its first occurrence. One that the clock skips means the instant at which
    it is skipped, when the clock is put forward.
    """
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return first
    before, after = local.replace(tzinfo=zone, fold=1).astimezone(UTC), first
    offset = after.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after
