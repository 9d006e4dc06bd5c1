"""People are shown local time with its offset; ``--json`` has UTC."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.commands import run_trunkline
from trunkline.api.text import format_local_time, local_to_utc

AT = datetime(2026, 1, 5, 9, 30, 15, tzinfo=UTC)
ZONE = "UTC-05:30"
"""A POSIX zone: five and a half hours ahead of UTC."""


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's clock is 5:30 ahead of UTC."""
    monkeypatch.setenv("TZ", ZONE)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("ahead")
def test_a_time_is_shown_on_the_local_clock_with_its_offset() -> None:
    """This holds for any zone of the given time."""
    assert format_local_time(AT) == "2026-01-05 15:00+05:30"
    assert format_local_time(AT, seconds=True) == "2026-01-05 15:00:15+05:30"
    assert format_local_time(AT.astimezone()) == format_local_time(AT)


@pytest.mark.usefixtures("ahead")
def test_a_written_time_is_local_unless_it_has_an_offset() -> None:
    """The result is in UTC in both cases."""
    assert local_to_utc(datetime(2026, 1, 5, 15, 0, 15)) == AT
    assert local_to_utc(AT) == AT
    assert local_to_utc(AT.astimezone()).utcoffset() == timedelta(0)


@pytest.mark.usefixtures("ahead")
def test_a_time_at_the_end_of_the_calendar_keeps_its_offset() -> None:
    """The local clock cannot show the last hours of the year 9999."""
    last = datetime(9999, 12, 31, 23, 0, tzinfo=UTC)
    assert format_local_time(last) == "9999-12-31 23:00+00:00"
    assert format_local_time(datetime.fromisoformat("9999-12-31T23:00:00-05:00")) == "9999-12-31 23:00-05:00"


@pytest.mark.parametrize("text", ["9999-12-31T23:00:00-05:00", "0001-01-01T00:00:00+05:00"])
def test_a_written_time_outside_the_calendar_is_refused(text: str) -> None:
    """UTC has the years 1 to 9999."""
    with pytest.raises(ValueError, match="years 1 to 9999"):
        local_to_utc(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--since", "9999-12-31T23:00:00-05:00"),
        ("audit", "--since", "99999999999d"),
        ("memory", "search", "x", "--since", "0001-01-01"),
        ("memory", "search", "x", "--until", "0001-01-01"),
        ("memory", "chunks", "list", "--after", "0001-01-01"),
        ("memory", "chunks", "list", "--before", "0001-01-01"),
        ("learning", "facts", "--since", "0001-01-01"),
        ("learning", "facts", "--until", "0001-01-01"),
        ("permissions", "rules", "add", "deny", "*", "read", "*", "--until", "0001-01-01"),
    ],
)
def test_commands_refuse_a_time_outside_the_calendar(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The message quotes the time; there is no traceback."""
    run = run_trunkline(tmp_path, *words, TZ=ZONE)
    assert run.returncode in (1, 2), run.stderr
    assert words[-1] in run.stderr and "Traceback" not in run.stderr, run.stderr


def test_an_invalid_time_zone_offset_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX allows larger offsets than a day; Python has no time zone for them."""
    monkeypatch.setenv("TZ", "UTC+25")
    time.tzset()
    try:
        assert format_local_time(AT) == "2026-01-05 09:30+00:00"
        assert local_to_utc(datetime(2026, 1, 5, 9, 30, 15)) == AT
    finally:
        monkeypatch.undo()
        time.tzset()


def test_commands_show_local_time_and_print_utc_as_json(home: Path) -> None:
    """The audit log, the list of files and the history, of one message."""
    said = run_trunkline(home, "say", "/tool memory_write path=a.md content=x", TZ=ZONE)
    assert said.returncode in (0, 3), said.stderr
    for words in (("audit",), ("memory", "list"), ("memory", "history")):
        shown = run_trunkline(home, *words, TZ=ZONE).stdout
        assert "+05:30" in shown and "UTC" not in shown, shown
        printed = run_trunkline(home, *words, "--json", TZ=ZONE).stdout
        entries = (
            [json.loads(line) for line in printed.splitlines()]
            if words == ("audit",)
            else json.loads(printed)
        )
        times = [one[key] for one in entries for key in ("at", "modified_at", "timestamp") if key in one]
        assert times and all(text.endswith("Z") for text in times), printed
