"""Times in words: each form means one time, and nothing is guessed."""

from datetime import datetime

import pytest

from trunkline_pulse.phrases import ResolvedTime, resolve_time

NOW = datetime(2026, 11, 28, 17, 30)
"""A Saturday."""


@pytest.mark.parametrize(
    ("words", "cron"),
    [
        ("every weekday at 8", "0 8 * * 1-5"),
        ("Every weekday at 8.", "0 8 * * 1-5"),
        ("at 8am every weekday", "0 8 * * 1-5"),
        ("every day at 7:30", "30 7 * * *"),
        ("daily at noon", "0 12 * * *"),
        ("every day at 8 and 20", "0 8,20 * * *"),
        ("weekends at 10:15 pm", "15 22 * * 0,6"),
        ("mondays and fridays at 18:00", "0 18 * * 1,5"),
        ("every monday, wednesday and sunday at midnight", "0 0 * * 0,1,3"),
        ("every month on the 1st at 9", "0 9 1 * *"),
        ("on the 15th of every month at 9:05", "5 9 15 * *"),
        ("every hour", "0 * * * *"),
    ],
)
def test_repeated_times_are_cron_lines(words: str, cron: str) -> None:
    assert resolve_time(words, NOW) == ResolvedTime(cron=cron)


@pytest.mark.parametrize(
    ("words", "seconds"), [("every 15 minutes", 900), ("every minute", 60), ("every 2 days", 172_800)]
)
def test_intervals(words: str, seconds: int) -> None:
    assert resolve_time(words, NOW) == ResolvedTime(every=seconds)


@pytest.mark.parametrize(
    ("words", "at", "relative"),
    [
        ("in 20 minutes", datetime(2026, 11, 28, 17, 50), True),
        ("in an hour", datetime(2026, 11, 28, 18, 30), True),
        ("tomorrow at 9", datetime(2026, 11, 29, 9), True),
        ("9 am tomorrow", datetime(2026, 11, 29, 9), True),
        ("at 18:00", datetime(2026, 11, 28, 18), True),
        ("at 9", datetime(2026, 11, 29, 9), True),
        ("on monday at 9", datetime(2026, 11, 30, 9), True),
        ("next saturday at 9", datetime(2026, 12, 5, 9), True),
        ("2026-12-24 18:00", datetime(2026, 12, 24, 18), False),
        ("on 2026-12-24 at 6 pm", datetime(2026, 12, 24, 18), False),
        ("2026-12-24T18:00:30", datetime(2026, 12, 24, 18, 0, 30), False),
    ],
)
def test_single_times(words: str, at: datetime, relative: bool) -> None:
    assert resolve_time(words, NOW) == ResolvedTime(at=at, is_relative=relative)


@pytest.mark.parametrize(
    "words",
    ["", "soon", "every weekday", "every day at 25", "every day at 8:30 and 9", "every 0 minutes", "13 pm tomorrow",
     "monday at 9", "2026-13-01 09:00", "every month on the 40th at 9", "every day at 8 unless it rains"],
)  # fmt: skip
def test_other_words_are_refused_with_the_forms(words: str) -> None:
    with pytest.raises(ValueError, match="every weekday at 8"):
        resolve_time(words, NOW)
