"""Times in words, such as "every weekday at 8", resolved by rule. Pure: the caller names the time.

A phrase that no rule knows is refused with the forms that there are; nothing is guessed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from types import MappingProxyType

FORMS = (
    'Write a time such as "every weekday at 8", "every day at 7:30", "mondays and fridays at 18:00", '
    '"every 15 minutes", "every hour", "every month on the 1st at 9", "tomorrow at 9", '
    '"in 20 minutes" or "2026-12-24 18:00".'
)

_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_UNITS: Mapping[str, int] = MappingProxyType(
    {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
)
_TIME = r"(?:noon|midnight|\d{1,2}(?::\d{2})?\s*(?:am|pm|h)?)"
_TIMES = rf"{_TIME}(?:\s*(?:,|and)\s*{_TIME})*"
_DAY_LIST = rf"(?:{'|'.join(_DAYS)})s?(?:\s*(?:,|and|, and)\s*(?:{'|'.join(_DAYS)})s?)*"


@dataclass(frozen=True, slots=True)
class ResolvedTime:
    """A time of a schedule: one of the three. ``at`` is a local time. ``is_relative`` is true if it depends on when the
    words were said.
    """

    cron: str = ""
    every: int | None = None
    at: datetime | None = None
    is_relative: bool = False


def resolve_time(words: str, now: datetime) -> ResolvedTime:
    """Return the time that some words mean, at the local time ``now``.

    Raises:
        ValueError: no rule knows the words. The text says which forms there are.
    """
    text = " ".join(words.strip().lower().rstrip(".").split())
    found = _interval(text) or _repeated(text) or _once(text, now.replace(tzinfo=None))
    if found is None:
        raise ValueError(f"{words[:80]!r} is no time that can be resolved. {FORMS}")
    return found


def _interval(text: str) -> ResolvedTime | None:
    if text in ("every hour", "hourly"):
        return ResolvedTime(cron="0 * * * *")
    if text == "every minute":
        return ResolvedTime(every=60)
    found = re.fullmatch(r"every (\d{1,6}) (second|minute|hour|day|week)s?", text)
    if found is None or int(found[1]) == 0:
        return None
    return ResolvedTime(every=int(found[1]) * _UNITS[found[2]])


def _repeated(text: str) -> ResolvedTime | None:
    found = re.fullmatch(rf"(?:at )?({_TIMES}) ((?:every|on|daily|weekdays|weekends).*)", text)
    if found is not None:
        text = f"{found[2]} at {found[1]}"
    found = re.fullmatch(rf"(.+?),? at ({_TIMES})", text)
    if found is None:
        return None
    clock = _cron_clock(found[2])
    days = _cron_days(found[1])
    return None if clock is None or days is None else ResolvedTime(cron=f"{clock} {days}")


def _cron_clock(text: str) -> str | None:
    """Return the minute and hour fields of times of the day that have the same minute."""
    times = [_time_of(one) for one in re.findall(_TIME, text)]
    known = [one for one in times if one is not None]
    if len(known) < len(times) or len({one.minute for one in known}) != 1:
        return None
    return f"{known[0].minute} {','.join(str(hour) for hour in sorted({one.hour for one in known}))}"


def _cron_days(text: str) -> str | None:
    """Return the day, month and weekday fields of words such as "every weekday"."""
    if text in ("every day", "daily", "each day"):
        return "* * *"
    if re.fullmatch(r"(?:every |on )?weekdays?", text):
        return "* * 1-5"
    if re.fullmatch(r"(?:every |on )?weekends?", text):
        return "* * 0,6"
    if found := re.fullmatch(rf"(every |on )?({_DAY_LIST})", text):
        said = re.findall(rf"({'|'.join(_DAYS)})(s?)", found[2])
        repeats = found[1] == "every " or all(plural for _, plural in said)
        numbers = sorted({_DAYS.index(name) for name, _ in said})
        return f"* * {','.join(map(str, numbers))}" if repeats else None
    month = r"(?:every month|monthly) on the (\d{1,2})(?:st|nd|rd|th)?|on the (\d{1,2})(?:st|nd|rd|th)? of every month"
    if found := re.fullmatch(month, text):
        day = int(found[1] or found[2])
        return f"{day} * *" if 1 <= day <= 31 else None
    return None


def _once(text: str, now: datetime) -> ResolvedTime | None:
    if found := re.fullmatch(r"in (\d{1,6}|an?) (second|minute|hour|day|week)s?", text):
        number = int(found[1]) if found[1].isdigit() else 1
        at = now + timedelta(seconds=number * _UNITS[found[2]])
        return ResolvedTime(at=at.replace(microsecond=0), is_relative=True)
    if found := re.fullmatch(
        rf"(?:on )?(\d{{4}}-\d{{2}}-\d{{2}})(?: at | ?t|,? )({_TIME}|\d{{2}}:\d{{2}}:\d{{2}})", text
    ):
        return _dated(found[1], found[2])
    if found := re.fullmatch(rf"(?:at )?({_TIME}) (today|tomorrow)", text):
        text = f"{found[2]} at {found[1]}"
    found = re.fullmatch(rf"(?:(today|tomorrow|(?:on |next )(?:{'|'.join(_DAYS)})) )?at ({_TIME})", text)
    clock = _time_of(found[2]) if found is not None else None
    if found is None or clock is None:
        return None
    day = _day_of(found[1], now, clock)
    return ResolvedTime(at=datetime.combine(day, clock), is_relative=True)


def _day_of(word: str | None, now: datetime, clock: time) -> date:
    """Return the day of "today", "tomorrow", "on monday", or of the next such time of the day."""
    today = now.date()
    if word == "today":
        return today
    if word == "tomorrow":
        return today + timedelta(days=1)
    if word is None:
        return today if clock > now.time() else today + timedelta(days=1)
    wanted = (_DAYS.index(word.split()[1]) - 1) % 7
    ahead = (wanted - today.weekday()) % 7
    return today + timedelta(days=ahead or 7)


def _dated(day: str, clock: str) -> ResolvedTime | None:
    try:
        exact = time.fromisoformat(clock) if clock.count(":") == 2 else _time_of(clock)
        return None if exact is None else ResolvedTime(at=datetime.combine(date.fromisoformat(day), exact))
    except ValueError:
        return None


def _time_of(text: str) -> time | None:
    """Return a time of the day such as "8", "8:30 pm" or "noon"; None if there is none of that form."""
    if text in ("noon", "midnight"):
        return time(12 if text == "noon" else 0)
    found = re.fullmatch(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm|h)?", text.strip())
    if found is None:
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half in ("am", "pm"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None
