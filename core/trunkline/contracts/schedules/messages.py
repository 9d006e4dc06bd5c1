"""The state of a schedule with its last runs, and the message that it is due."""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline_bus import Payload

RunOutcome = Literal["started", "finished", "failed", "skipped", "missed", "quiet"]
"""What became of a due time: its turn runs, ended or failed, it was passed over because of the previous run or because
nothing ran at that time, or its answer was that nothing happened.
"""


class ScheduleDue(Payload, frozen=True, kw_only=True, tag="schedule.due.v1"):
    """A schedule is due at ``due_at``. With ``by_hand`` a person runs it now, whatever its times are."""

    block: str
    name: str
    due_at: datetime
    by_hand: bool = False


class ScheduleRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A due time and what became of it. ``turn`` and ``conversation`` are "" if no turn began. ``count`` is the number
    of due times that this entry stands for, the last one of which is ``due_at``. ``detail`` is a reason for people.
    """

    due_at: datetime
    outcome: RunOutcome
    turn: str = ""
    conversation: str = ""
    ended_at: datetime | None = None
    count: int = 1
    detail: str = ""


class ScheduleState(Payload, frozen=True, kw_only=True, tag="schedule.state.v1"):
    """The state of a schedule. ``version`` is the hash of the file that it was derived from.

    ``next_due`` is the next due time, None if there is none. ``claimed`` are due times whose turns are being handed
    over to the gateway: whoever finds them completes that before anything else. With ``claimed_by_hand`` they are the
    moment at which a person ran the schedule. ``runs`` are the last runs, the newest last.
    ``conversation`` is the one that all runs share, "" if each has its own. ``problem`` says what a person must correct
    in the file, "" if the file is valid.
    """

    block: str
    name: str
    version: str
    next_due: datetime | None = None
    claimed: tuple[datetime, ...] = ()
    claimed_by_hand: bool = False
    runs: tuple[ScheduleRun, ...] = ()
    conversation: str = ""
    problem: str = ""


class ScheduledTurn(Payload, frozen=True, kw_only=True, tag="schedule.turn.v1"):
    """The schedule that a turn belongs to."""

    block: str
    name: str
    due_at: datetime
