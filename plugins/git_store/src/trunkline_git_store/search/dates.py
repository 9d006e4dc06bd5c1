"""The time that a question mentions: "last Tuesday", "in May", "two weeks ago", "between 3 May and 10 May". Pure.

Only English is understood, and dates in figures as ISO 8601 writes them. A name without a year means the last time it
was. Weeks begin on Monday.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_NUMBERS = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3}

_MONTH = "(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + ")"
_WEEKDAY = "(?P<weekday>" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _DAYS) + ")"
_NUMBER = r"(?P<number>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT = "(?P<unit>day|week|month|year)s?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"


class Period(msgspec.Struct, frozen=True):
    """The time from ``start`` to before ``end``. ``phrase`` is the part of the query that names it."""

    start: datetime
    end: datetime
    phrase: str


Span = tuple[datetime, datetime]


def parse_period(text: str, now: datetime) -> Period | None:
    """The time that a text speaks of, seen from ``now``; None when it speaks of none."""
    folded = " ".join(text.casefold().split())
    return _joined(folded, now) or _first(folded, now)


def _joined(text: str, now: datetime) -> Period | None:
    """Two times with a word between, or one that is the beginning or the end."""
    for found in _BOTH.finditer(text):
        start, end = _at_once(found["start"], now), _at_once(found["end"], now)
        if start and end and start.start < end.end:
            return Period(start.start, end.end, f"{start.phrase} to {end.phrase}")
    for found in _EDGE.finditer(text):
        one = _at_once(found["rest"], now)
        if one is not None:
            return _open(found["edge"], one, now)
    return None


_BOTH = re.compile(r"\b(?:between|from) (?P<start>.{1,40}?) (?:and|to|until|till) (?P<end>.{1,40})")
_EDGE = re.compile(r"\b(?P<edge>since|after|(?<!day )before|until) (?P<rest>.{1,40})")


def _open(edge: str, one: Period, now: datetime) -> Period:
    if edge in ("before", "until"):
        return Period(datetime(1970, 1, 1, tzinfo=now.tzinfo), one.start, f"{edge} {one.phrase}")
    begin = one.end if edge == "after" else one.start
    return Period(begin, max(now, begin) + timedelta(days=1), f"{edge} {one.phrase}")


def _first(text: str, now: datetime) -> Period | None:
    """The first time that is said anywhere."""
    for pattern, meaning in _WAYS:
        for found in pattern.finditer(text):
            if (span := meaning(found, now)) is not None:
                return Period(*span, found[0])
    return None


def _at_once(text: str, now: datetime) -> Period | None:
    """The time that a text begins with; here a month or a year may stand alone."""
    for pattern, meaning in (*_WAYS, *_ALONE):
        found = pattern.match(text.removeprefix("the "))
        if found is not None and (span := meaning(found, now)) is not None:
            return Period(*span, found[0])
    return None


# Ways of saying it ---------------------------------------------------------------------------------------------


def _exact(match: re.Match[str], now: datetime) -> Span | None:
    year, month, day = int(match["year"]), int(match["month"]), match["date"]
    return _day(now, year, month, int(day)) if day else _month(now, year, month)


def _month_day(match: re.Match[str], now: datetime) -> Span | None:
    month, year = _month_number(match["month"]), match["year"]
    span = _day(now, int(year) if year else now.year, month, int(match["day"]))
    if span and not year and span[0] > now:
        span = _day(now, now.year - 1, month, int(match["day"]))
    return span


def _named_month(match: re.Match[str], now: datetime) -> Span | None:
    month, year = _month_number(match["month"]), match["year"]
    if year:
        return _month(now, int(year), month)
    earlier = month > now.month or (match["last"] is not None and month == now.month)
    return _month(now, now.year - earlier, month)


def _weekday(match: re.Match[str], now: datetime) -> Span | None:
    today, wanted = _midnight(now), next(n for n, d in enumerate(_DAYS) if d.startswith(match["weekday"]))
    if match["which"] == "next":
        return _days(today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1), 1)
    if match["which"] == "this":
        return _days(today + timedelta(days=wanted - today.weekday()), 1)
    return _days(today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1), 1)


def _ago(match: re.Match[str], now: datetime) -> Span | None:
    number, unit, today = _number(match["number"]), match["unit"], _midnight(now)
    if unit == "day":
        return _days(today - timedelta(days=number), 1)
    if unit == "week":
        return _days(today - timedelta(days=7 * number + 3), 7)
    if unit == "month":
        return _month(now, *_months_back(now, number))
    return _year(now, now.year - number)


def _past(match: re.Match[str], now: datetime) -> Span | None:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[match["unit"]] * _number(match["number"])
    return now - timedelta(days=days), now + timedelta(days=1)


def _whole(match: re.Match[str], now: datetime) -> Span | None:
    step = {"last": 1, "this": 0, "next": -1}[match["which"]]
    today = _midnight(now)
    if match["unit"] == "week":
        return _days(today - timedelta(days=today.weekday() + 7 * step), 7)
    if match["unit"] == "weekend":
        return _days(today - timedelta(days=today.weekday() - 5 + 7 * step), 2)
    if match["unit"] == "month":
        return _month(now, *_months_back(now, step))
    return _year(now, now.year - step)


def _near(match: re.Match[str], now: datetime) -> Span | None:
    back = {"today": 0, "tonight": 0, "this morning": 0, "yesterday": 1, "last night": 1, "tomorrow": -1}
    days = 2 if match[0].startswith("the day before") else back[match[0]]
    return _days(_midnight(now) - timedelta(days=days), 1)


def _only_year(match: re.Match[str], now: datetime) -> Span | None:
    return _year(now, int(match["year"]))


_Way = tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Span | None]]


def _ways(*ways: tuple[str, Callable[[re.Match[str], datetime], Span | None]]) -> tuple[_Way, ...]:
    return tuple((re.compile(rf"\b(?:{pattern})\b"), meaning) for pattern, meaning in ways)


_WAYS = _ways(
    (rf"{_YEAR}-(?P<month>[01]\d)(?:-(?P<date>[0-3]\d))?", _exact),
    (rf"{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?", _month_day),
    (rf"{_MONTH} {_DAY}(?:,? {_YEAR})?", _month_day),
    (rf"{_NUMBER} {_UNIT} ago", _ago),
    (rf"(?:last|past) {_NUMBER} {_UNIT}", _past),
    (rf"(?P<which>last|this|next|on|past) {_WEEKDAY}", _weekday),
    (r"(?P<which>last|this|next) (?P<unit>weekend|week|month|year)", _whole),
    ("the day before yesterday|today|tonight|this morning|yesterday|last night|tomorrow", _near),
    (rf"(?:in|during|early|late|(?P<last>last)) {_MONTH}(?: (?:of )?{_YEAR})?", _named_month),
    (rf"(?:in|during) {_YEAR}", _only_year),
)
_ALONE = _ways(
    (rf"(?P<last>(?!))?{_MONTH}(?: {_YEAR})?", _named_month),
    (rf"(?P<which>(?!))?{_WEEKDAY}", _weekday),
    (_YEAR, _only_year),
)
"""Expressions that mean a time only where a time is expected: "may" and "2000" have other meanings too."""


# Reckoning -----------------------------------------------------------------------------------------------------


def _midnight(when: datetime) -> datetime:
    return when.replace(hour=0, minute=0, second=0, microsecond=0)


def _days(start: datetime, count: int) -> Span:
    return start, start + timedelta(days=count)


def _day(now: datetime, year: int, month: int, day: int) -> Span | None:
    try:
        return _days(datetime(year, month, day, tzinfo=now.tzinfo), 1)
    except ValueError:
        return None


def _month(now: datetime, year: int, month: int) -> Span | None:
    if not 1 <= month <= 12:
        return None
    start = datetime(year, month, 1, tzinfo=now.tzinfo)
    return start, start.replace(year=year + month // 12, month=month % 12 + 1)


def _year(now: datetime, year: int) -> Span:
    return datetime(year, 1, 1, tzinfo=now.tzinfo), datetime(year + 1, 1, 1, tzinfo=now.tzinfo)


def _months_back(now: datetime, count: int) -> tuple[int, int]:
    months = now.year * 12 + now.month - 1 - count
    return months // 12, months % 12 + 1


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, start=1) if month.startswith(name[:3]))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _NUMBERS[text]
