"""Times for people: local time with its UTC offset. JSON output has times in UTC (RFC 3339) and does not use this."""

from datetime import UTC, datetime


def to_local_time(at: datetime) -> datetime:
    """Return the time on this machine's clock, with its UTC offset.

    Times are in UTC while ``TZ`` names an offset of a day or more, such as ``UTC+25``: Python has no such time zone. A
    time at the end of the calendar that neither clock can show keeps its own offset.
    """
    for zone in (None, UTC):
        try:
            return at.astimezone(zone)
        except (ValueError, OverflowError):
            continue
    return at


def format_local_time(at: datetime, *, seconds: bool = False) -> str:
    """Return the time on this machine's clock with its UTC offset, such as ``2026-01-05 10:30+01:00``."""
    return to_local_time(at).isoformat(sep=" ", timespec="seconds" if seconds else "minutes")


def local_to_utc(written: datetime) -> datetime:
    """Return a time that a person wrote, in UTC. A time without an offset is local time.

    Raises ValueError if the time is outside the years 1 to 9999 in UTC.
    """
    try:
        return written.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        if written.tzinfo is None and not _has_local_zone():
            return written.replace(tzinfo=UTC)
        raise ValueError(f"{written.isoformat()} is outside the years 1 to 9999 in UTC") from error


def _has_local_zone() -> bool:
    """Report whether Python has the time zone that ``TZ`` names."""
    try:
        datetime.now(UTC).astimezone()
    except ValueError:
        return False
    return True
