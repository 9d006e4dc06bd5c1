"""The times that questions speak of, seen from Wednesday the 18th of November 2026."""

from datetime import UTC, datetime

import pytest

from trunkline_git_store.search.dates import parse_period

NOW = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("what did Anna say last Tuesday?", "2026-11-17", "2026-11-18"),
        ("last Wednesday", "2026-11-11", "2026-11-12"),
        ("next friday", "2026-11-20", "2026-11-21"),
        ("on Sunday", "2026-11-15", "2026-11-16"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in May 2025", "2025-05-01", "2025-06-01"),
        ("two weeks ago", "2026-11-01", "2026-11-08"),
        ("3 days ago", "2026-11-15", "2026-11-16"),
        ("a month ago", "2026-10-01", "2026-11-01"),
        ("the last 3 days", "2026-11-15", "2026-11-19"),
        ("yesterday", "2026-11-17", "2026-11-18"),
        ("the day before yesterday", "2026-11-16", "2026-11-17"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("last weekend", "2026-11-14", "2026-11-16"),
        ("this month", "2026-11-01", "2026-12-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("during 2024", "2024-01-01", "2025-01-01"),
        ("on 2026-02-28", "2026-02-28", "2026-03-01"),
        ("on May 7, 2023", "2023-05-07", "2023-05-08"),
        ("the 7th of May", "2026-05-07", "2026-05-08"),
        ("between 3 May and 10 May", "2026-05-03", "2026-05-11"),
        ("from May to July 2025", None, None),
        ("between May and July", "2026-05-01", "2026-08-01"),
        ("from Monday to Tuesday", "2026-11-16", "2026-11-18"),
        ("since March", "2026-03-01", "2026-11-19"),
        ("before 2020", "1970-01-01", "2020-01-01"),
        ("until last week", "1970-01-01", "2026-11-09"),
        ("after 31 February", None, None),
        ("it may rain on us", None, None),
        ("march on, 2000 of you", None, None),
        ("", None, None),
    ],
)
def test_a_time_is_understood(said: str, start: str | None, end: str | None) -> None:
    """From the beginning to before the end, in whole days; nothing where no time is meant."""
    found = parse_period(said, NOW)
    assert (found and found.start.date().isoformat()) == start
    assert start is None or (found is not None and found.end.date().isoformat() == end)
