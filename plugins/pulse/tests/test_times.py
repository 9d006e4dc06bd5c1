"""Due times without waiting: a year against the library and against a brute-force reading of cron, and both changes of
the clock in two time zones."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

import msgspec
import pytest
from cronsim import CronSim

from trunkline_pulse.armer import OUTAGE, first_moment
from trunkline_pulse.due_times import MAX_DUES, take_dues
from trunkline_pulse.schedule import Schedule, schedule_problem
from trunkline_pulse.times import dues_between, jittered, next_due, next_dues

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def field_values(text: str, first: int, last: int) -> set[int]:
    """Read one field of a cron line by its definition."""
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        low, _, high = span.partition("-")
        begin, end = (first, last) if span == "*" else (int(low), int(high or (last if step else low)))
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


Minutes = list[tuple[datetime, list[datetime]]]
"""The minutes of a year, each with the times on the clock that it stands for."""


@cache
def minutes_of(zone: ZoneInfo) -> Minutes:
    """Return each minute of a year with what the clock shows then and has skipped since the last minute. A time that
    the clock repeats is left out the second time."""
    found: Minutes = []
    begin = BEGIN.astimezone(zone).replace(tzinfo=None)
    latest, moment = begin - timedelta(minutes=1), BEGIN
    offset = BEGIN - begin.replace(tzinfo=UTC)
    while moment < END:
        if moment.minute == 0:
            offset = moment - moment.astimezone(zone).replace(tzinfo=UTC)
        local = (moment - offset).replace(tzinfo=None)
        gap = int((local - latest) / timedelta(minutes=1))
        found.append((moment, [local - timedelta(minutes=back) for back in range(gap - 1, -1, -1)]))
        latest, moment = max(latest, local), moment + timedelta(minutes=1)
    return found


def brute_force(line: str, zone: ZoneInfo) -> list[datetime]:
    """Look at each minute of a year, and keep those that the line names. A line for every hour counts all minutes that
    pass; any other one counts a time on the clock once."""
    fields = line.split()
    values = [field_values(text, *span) for text, span in zip(fields, RANGES, strict=True)]
    stars = [text.startswith("*") for text in fields]
    weekdays = {day % 7 for day in values[4]}

    def named(local: datetime) -> bool:
        if local.minute not in values[0] or local.hour not in values[1] or local.month not in values[3]:
            return False
        in_month, in_week = local.day in values[2], local.isoweekday() % 7 in weekdays
        return (in_month and in_week) if stars[2] or stars[4] else (in_month or in_week)

    if fields[1] == "*":
        return [moment for moment, _ in minutes_of(zone) if named(moment.astimezone(zone))]
    return [moment for moment, passed in minutes_of(zone) if any(map(named, passed))]


def year_of(line: str, zone: ZoneInfo) -> list[datetime]:
    """Return what the plugin says about a year."""
    return dues_between(Schedule(instruction="x", cron=line), BEGIN, END - timedelta(seconds=1), zone, 10**6)


LINES = (
    "0 9 * * 1-5,7", "30 2 * * *", "0,30 1-3 * * 0", "0 0 29 2,3 *", "15 */6 1,15 * *", "5 4 13 * 5",
    "*/20 2 * 3,10,11 *", "0 * * * *",
)  # fmt: skip


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK], ids=str)
@pytest.mark.parametrize("line", LINES)
def test_MB_T16_a_year_is_as_a_reading_minute_by_minute_says(line: str, zone: ZoneInfo) -> None:
    """Lists, ranges and steps, in two time zones, across both changes of the clock."""
    assert year_of(line, zone) == brute_force(line, zone)


@pytest.mark.parametrize("line", ["*/5 * * * *", "0 9 * * 1-5,7", "0 12 1 * *", "0 22 * * SUN", "17 5 L * *"])
@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK], ids=str)
def test_MB_T16_a_year_is_as_the_library_says(line: str, zone: ZoneInfo) -> None:
    """Where no change of the clock matters, the due times are those of the library."""
    expected = takewhile(
        lambda due: due < END, CronSim(line, (BEGIN - timedelta(seconds=1)).astimezone(zone))
    )
    assert year_of(line, zone) == [due.astimezone(UTC) for due in expected]


@pytest.mark.parametrize(
    ("zone", "skipped", "repeated"),
    [
        (BERLIN, datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        (NEW_YORK, datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 5, 30, tzinfo=UTC)),
    ],
    ids=str,
)
def test_a_skipped_or_repeated_time_is_due_once(
    zone: ZoneInfo, skipped: datetime, repeated: datetime
) -> None:
    """On the day of each change the line is due once: when the clock is put forward, and at the first of two."""
    day = timedelta(hours=12)
    schedule = Schedule(instruction="x", cron="30 2 * * *")
    assert dues_between(schedule, skipped - day, skipped + day, zone, 9) == [skipped]
    again = Schedule(instruction="x", cron="30 2 * * *" if zone is BERLIN else "30 1 * * *")
    assert dues_between(again, repeated - day, repeated + day, zone, 9) == [repeated]
    hourly = Schedule(instruction="x", cron="30 * * * *")
    hours = dues_between(hourly, repeated - day, repeated + day, zone, 99)
    assert {later - earlier for earlier, later in pairwise(hours)} == {timedelta(hours=1)}


def test_intervals_count_from_their_start() -> None:
    """Two gateways find the same due times, whenever they look; nothing is due before the start."""
    start = datetime(2026, 5, 1, 12, 0, 7, tzinfo=UTC)
    schedule = Schedule(instruction="x", every=900, start=start)
    assert next_due(schedule, start - timedelta(days=9), BERLIN) == start
    assert next_due(schedule, start, BERLIN) == start + timedelta(seconds=900)
    assert next_due(schedule, start + timedelta(seconds=899, microseconds=5), BERLIN) == start + timedelta(
        seconds=900
    )


def test_a_single_time_and_the_end_of_a_schedule() -> None:
    """A local time is one of the schedule's zone. From ``expires`` on nothing is due."""
    once = Schedule(instruction="x", at=datetime(2026, 7, 1, 9, 0), time_zone="America/New_York")
    assert next_dues(once, BEGIN, BERLIN, 5) == [datetime(2026, 7, 1, 13, tzinfo=UTC)]
    assert next_due(once, datetime(2026, 7, 1, 13, tzinfo=UTC), BERLIN) is None
    ends = Schedule(instruction="x", cron="0 9 * * *", expires=datetime(2026, 1, 3, 9, 0))
    assert len(next_dues(ends, BEGIN, BERLIN, 9)) == 2


def test_jitter_follows_from_the_due_time() -> None:
    """Each gateway delays a run by the same time, within the limit; different runs differ."""
    schedule = Schedule(instruction="x", every=60, jitter=30)
    times = [jittered(schedule, "key", BEGIN + timedelta(minutes=number)) for number in range(20)]
    delays = [time - BEGIN - timedelta(minutes=number) for number, time in enumerate(times)]
    assert all(timedelta() <= delay <= timedelta(seconds=30) for delay in delays) and len(set(delays)) > 10
    assert times[3] == jittered(schedule, "key", BEGIN + timedelta(minutes=3))


@pytest.mark.parametrize(
    ("fields", "key", "why"),
    [
        ({"cron": "61 * * * *"}, "cron", "is no cron line"),
        ({"cron": "* * * *"}, "cron", "is no cron line"),
        ({"cron": "0 0 31 2 *"}, "cron", "is no cron line"),
        ({"cron": "0 9 * * *", "every": 60}, "every", "one of cron, every and at"),
        ({}, "type", "one of cron, every and at"),
        ({"every": 60, "time_zone": "Mars/Olympus"}, "time_zone", "no time zone"),
        ({"every": 60, "condition": "moon > 3"}, "condition", "is no condition"),
        ({"every": 60, "type": "webhook"}, "instruction", "the address"),
        ({"every": 60, "instruction": "  "}, "instruction", "empty"),
    ],
)
def test_what_a_person_must_correct_is_named(fields: dict[str, object], key: str, why: str) -> None:
    """A line that is never due, a zone that is not there, and an unknown condition are refused (MB-D12)."""
    problem = schedule_problem(Schedule(**{"instruction": "x", **fields}))  # type: ignore[arg-type]
    assert problem is not None and problem[0] == key and why in problem[1]


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_delay_by_jitter_misses_nothing(missed: str) -> None:
    """Each due time runs once when its delayed moment has come, whatever the policy for missed ones is."""
    schedule = Schedule(instruction="x", every=60, jitter=600, missed=missed)  # type: ignore[arg-type]
    first, ran = BEGIN + timedelta(seconds=60), list[datetime]()
    due: datetime | None = first
    while due is not None and len(ran) < 50:
        now = max([jittered(schedule, "key", due), *(jittered(schedule, "key", one) for one in ran)])
        taken = take_dues(schedule, due, now, BERLIN, "key")
        assert taken.late == ()
        ran += taken.to_run
        due = next_due(schedule, taken.last, BERLIN)
    assert ran == dues_between(schedule, first, ran[-1], BERLIN, 10_000)


@pytest.mark.parametrize(("missed", "runs"), [("skip", 0), ("once", 1), ("all", 100)])
def test_a_long_outage_is_caught_up_at_its_end(missed: str, runs: int) -> None:
    """More due times were missed than are processed at once: all are counted, and the last ones run."""
    now = BEGIN + timedelta(days=2, seconds=5)
    schedule = Schedule(instruction="x", every=10, missed=missed, expires=now)  # type: ignore[arg-type]
    due: datetime | None = BEGIN
    counted, ran, back = 0, list[datetime](), timedelta(minutes=10)
    while due is not None and due <= now:
        taken = take_dues(schedule, due, now + back, BERLIN, "key")
        counted, ran = counted + len(taken.late), [*ran, *(one for one in taken.to_run if one in taken.late)]
        due = next_due(schedule, taken.last, BERLIN)
    assert counted > MAX_DUES and len(ran) == runs
    assert all(now + back - one < timedelta(minutes=30) for one in ran)


@pytest.mark.parametrize(
    ("field", "text"),
    [("every", "1000000000000"), ("at", "9999-12-31T23:59:59-23:00"), ("start", "0001-01-01T00:00:00+23:00")],
)
def test_a_time_beyond_the_calendar_is_a_problem(field: str, text: str) -> None:
    """A file that a person wrote by hand is reported, and stops no gateway."""
    values = {"instruction": "x", field: int(text) if field == "every" else text}
    if field == "start":
        values["every"] = 60
    try:
        schedule = msgspec.convert(values, Schedule)
    except msgspec.ValidationError:
        return
    assert schedule_problem(schedule) is not None


def test_a_schedule_that_comes_later_counts_from_now() -> None:
    """A file of a restored block makes up for nothing; one that was saved in an outage, or is known, misses nothing."""
    schedule = Schedule(instruction="x", every=60)
    now = BEGIN + timedelta(days=30)
    for saved, seen, first in (
        (BEGIN, now, now),
        (now - OUTAGE, now, now - OUTAGE),
        (BEGIN, None, BEGIN),
    ):
        assert first_moment(schedule, saved, seen, BERLIN) == first
