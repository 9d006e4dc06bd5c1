"""The due times of a schedule that are processed at one moment. Pure.

A due time begins ``jitter`` later than it is due. It counts as missed if it is processed much later than it begins, so
a delay that the schedule itself asks for loses nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, islice, takewhile
from zoneinfo import ZoneInfo

from trunkline_pulse.schedule import Schedule
from trunkline_pulse.times import dues_between, jittered

ON_TIME = timedelta(seconds=60)
"""A due time counts as missed if it is processed later than this after it had to begin."""

MAX_DUES = 10_000
"""The largest number of due times that are processed at once."""

MAX_CAUGHT_UP = 100
"""The largest number of missed due times that are made up for."""


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The due times of one moment: those that were missed, and those that run now, which may be missed ones. ``last``
    is the latest of all; the next due time follows it.
    """

    late: tuple[datetime, ...]
    to_run: tuple[datetime, ...]
    last: datetime


def take_dues(schedule: Schedule, first: datetime, now: datetime, zone: ZoneInfo, key: str) -> DueTimes:
    """Return what to do with the due times from ``first``, whose time has come, to ``now``.

    A later due time with a shorter delay waits for those before it, so that runs begin in the order of the due times.
    If more than ``MAX_DUES`` were missed, the first of them are only counted: the policy is about the last ones, which
    come next.
    """
    now = max(now, first)
    dues = dues_between(schedule, first, now, zone, MAX_DUES)
    begins = accumulate((jittered(schedule, key, due) for due in dues), max)
    begun = [(first, jittered(schedule, key, first))]
    begun += takewhile(lambda one: one[1] <= now, islice(zip(dues, begins, strict=True), 1, None))
    late = [due for due, begin in begun if now - begin > ON_TIME]
    wanted = [due for due, _ in begun[len(late) :]]
    if len(dues) == MAX_DUES:
        late, wanted = [due for due, _ in begun], []
    elif schedule.missed == "all":
        wanted = [*late[-MAX_CAUGHT_UP:], *wanted]
    elif schedule.missed == "once" and not wanted:
        wanted = late[-1:]
    return DueTimes(tuple(late), tuple(wanted), begun[-1][0])
