"""A schedule: the content of its file ``blocks/BLOCK/schedules/NAME.toml``, and what is wrong with it."""

from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from trunkline_pulse.conditions import condition_problem
from trunkline_pulse.zones import find_zone, instant_of

ScheduleType = Literal["cron", "alert", "script", "log", "webhook", "heartbeat"]
Overlap = Literal["skip", "queue", "parallel"]
Missed = Literal["skip", "once", "all"]

MAX_INSTRUCTION = 20_000
"""The largest number of characters of an instruction."""

LONGEST_INTERVAL = 10 * 366 * 86_400
"""The longest interval in seconds: ten years."""

FIRST_YEAR, LAST_YEAR = 1970, 9000
"""The years of the times in a file. Arithmetic with later times could leave Python's calendar."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of a file. It names exactly one kind of time: ``cron``, ``every`` or ``at``.

    ``type`` says what happens with ``instruction`` at each due time. ``cron``, ``alert`` and ``heartbeat`` are messages
    to the agent; the owner is told of the answer to an ``alert``, and of the answer to a ``heartbeat`` unless it is
    "all quiet". ``script`` runs the text by the tool ``execute_command``, ``webhook`` fetches the address with the tool
    ``fetch_webpage``, and ``log`` adds the text to ``pulse.log`` in the block's memory.

    ``cron`` has five fields (minute, hour, day, month, weekday), or six with seconds before them. ``every`` is an
    interval in seconds from ``start`` on, by default from the beginning of 1970 (UTC). ``at`` is a single time. Times
    without an offset are in ``time_zone``. Nothing is due before ``start``, and from ``expires`` on.

    ``condition``, such as ``memory_percent > 80``, is checked at each due time, which passes without a run if it is
    false. ``jitter`` delays each run by up to so many seconds. ``overlap`` says what to do while the previous run
    lasts; the runs of a ``queue`` share one conversation. ``missed`` says which due times to make up for after nothing
    ran. The owner is told of the result through ``channel``, or, with ``announce``, as the preferences for notices say.
    ``model`` answers instead of the block's model. A schedule that is not ``enabled`` is paused.
    """

    instruction: str
    type: ScheduleType = "cron"
    cron: str = ""
    every: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_INTERVAL)] | None = None
    at: datetime | None = None
    time_zone: str = ""
    start: datetime | None = None
    expires: datetime | None = None
    condition: str = ""
    jitter: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 0
    overlap: Overlap = "skip"
    missed: Missed = "once"
    channel: str = ""
    announce: bool | None = None
    model: str | None = None
    enabled: bool = True

    @property
    def is_announced(self) -> bool:
        """Report whether the owner is told of the result of each run."""
        return (
            self.announce
            if self.announce is not None
            else self.type in ("alert", "heartbeat") or bool(self.channel)
        )

    def zone(self, default: ZoneInfo) -> ZoneInfo:
        """Return the time zone of the schedule."""
        return (find_zone(self.time_zone) if self.time_zone else None) or default

    def instant(self, time: datetime, default: ZoneInfo) -> datetime:
        """Return the instant of one of the schedule's times."""
        return instant_of(time, self.zone(default)) if time.tzinfo is None else time


def schedule_problem(schedule: Schedule) -> tuple[str, str] | None:
    """Return the key that a person must correct, and the problem; None if the schedule is valid."""
    kinds = [key for key in ("cron", "every", "at") if getattr(schedule, key)]
    if len(kinds) != 1:
        found = "none" if not kinds else " and ".join(kinds)
        return (
            kinds[-1] if kinds else "type"
        ), f"a schedule has one of cron, every and at; this one has {found}"
    if not schedule.instruction.strip():
        return "instruction", "the instruction is empty"
    if len(schedule.instruction) > MAX_INSTRUCTION:
        return "instruction", f"the instruction has more than {MAX_INSTRUCTION} characters"
    for key in ("at", "start", "expires"):
        time = getattr(schedule, key)
        if time is not None and not FIRST_YEAR <= time.year <= LAST_YEAR:
            return key, f"its year is not from {FIRST_YEAR} to {LAST_YEAR}"
    if schedule.time_zone and find_zone(schedule.time_zone) is None:
        return "time_zone", f"there is no time zone {schedule.time_zone!r}"
    if schedule.type == "webhook" and not schedule.instruction.strip().startswith(("http://", "https://")):
        return "instruction", "the instruction of a webhook is the address to fetch"
    if why := condition_problem(schedule.condition):
        return "condition", why
    if schedule.cron and (why := _cron_problem(schedule.cron)):
        return "cron", why
    return None


def _cron_problem(line: str) -> str:
    """Return what is wrong with a cron line; "" if it is valid."""
    try:
        next(CronSim(line, datetime(2024, 1, 1)))
    except CronSimError as error:
        return f"{line!r} is no cron line: {error}"
    except (StopIteration, ValueError):
        return f"{line!r} is never due"
    return ""
