"""Makes a schedule from the arguments of a tool call, and describes it for the owner who is asked about it. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from trunkline import ToolError
from trunkline.api.schedule import SCHEDULE_NAME_RULE, is_schedule_name
from trunkline_pulse.phrases import ResolvedTime, resolve_time
from trunkline_pulse.schedule import Schedule, schedule_problem
from trunkline_pulse.schedule_file import write_schedule
from trunkline_pulse.times import next_dues

SHOWN_DUES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeArguments:
    """The arguments of a call that say when: exactly one of ``when``, ``cron`` and ``interval``."""

    when: str = ""
    cron: str = ""
    interval: int | None = None
    time_zone: str = ""


def build_schedule(
    name: str,
    times: TimeArguments,
    now: datetime,
    zone: ZoneInfo,
    *,
    expires_in: int | None = None,
    **fields: Any,
) -> Schedule:
    """Return the schedule that the arguments of a call mean. ``fields`` are further keys of the file.

    Raises:
        ToolError: ``invalid_arguments``: the name, a time or another argument is not valid, or the time is relative. A
            relative time would mean another time when the owner approves the call, so the text names the exact one.
    """
    if not is_schedule_name(name):
        raise _invalid(f"A schedule's name has {SCHEDULE_NAME_RULE}.")
    named = [one for one in (times.when, times.cron, times.interval) if one]
    if len(named) != 1:
        raise _invalid("Say once when: a time in words, a cron line, or an interval in seconds.")
    try:
        schedule = msgspec.convert(
            {
                **fields,
                "time_zone": times.time_zone,
                "cron": times.cron,
                "every": times.interval,
                "start": now.replace(microsecond=0) if times.interval else None,
                "expires": (now + timedelta(seconds=expires_in)).replace(microsecond=0)
                if expires_in
                else None,
            },
            Schedule,
        )
    except msgspec.ValidationError as error:
        raise _invalid(f"There can be no such schedule: {error}.") from error
    if times.when:
        schedule = _with_time(schedule, times.when, now, zone)
    problem = schedule_problem(schedule)
    if problem is not None:
        raise _invalid(f"There can be no such schedule: {problem[1]}.")
    if not next_dues(schedule, now - timedelta(seconds=1), zone, 1):
        raise _invalid("There can be no such schedule: its time has passed.")
    return schedule


def _with_time(schedule: Schedule, when: str, now: datetime, default: ZoneInfo) -> Schedule:
    zone = schedule.zone(default)
    try:
        found = resolve_time(when, now.astimezone(zone))
    except ValueError as error:
        raise _invalid(str(error)) from error
    if found.is_relative and found.at is not None:
        exact = f"{found.at:%Y-%m-%d %H:%M:%S}"
        raise _invalid(
            f"{when!r} is {exact} ({zone.key}) now, and another time when the owner approves it. Call again with "
            f'when="{exact}".'
        )
    return msgspec.structs.replace(schedule, **_time_fields(found, now))


def _time_fields(found: ResolvedTime, now: datetime) -> dict[str, Any]:
    start = now.replace(microsecond=0) if found.every else None
    return {"cron": found.cron, "every": found.every, "at": found.at, "start": start}


def describe_schedule(name: str, schedule: Schedule, now: datetime, zone: ZoneInfo) -> str:
    """Return what the owner is shown before the schedule is saved: its next times, and its file."""
    own = schedule.zone(zone)
    dues = next_dues(schedule, now - timedelta(seconds=1), zone, SHOWN_DUES)
    lines = [f"  {format_due(due, own)}" for due in dues]
    first = "begins when it is saved, then " if schedule.every else ""
    return "\n".join(
        [
            f"Schedule {name}: {first}{describe_times(schedule)} ({own.key}).",
            "The next times:" if dues else "It is never due.",
            *lines,
            "",
            f"schedules/{name}.toml:",
            write_schedule(schedule),
        ]
    )


def describe_times(schedule: Schedule) -> str:
    """Return the time of a schedule in a few words."""
    if schedule.cron:
        return f"cron {schedule.cron}"
    if schedule.every:
        return f"every {_interval(schedule.every)}"
    return f"at {schedule.at:%Y-%m-%d %H:%M}" if schedule.at is not None else "never"


def _interval(seconds: int) -> str:
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds % size == 0:
            number = seconds // size
            return unit if number == 1 else f"{number} {unit}s"
    return f"{seconds} seconds"


def format_due(due: datetime, zone: ZoneInfo) -> str:
    """Return a due time for people, in a time zone."""
    return f"{due.astimezone(zone):%a %Y-%m-%d %H:%M:%S %Z}"


def _invalid(text: str) -> ToolError:
    return ToolError(text, kind="invalid_arguments")
