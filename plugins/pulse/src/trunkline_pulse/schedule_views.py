"""A schedule as people see it in commands: its file, its state, its next times and its last runs."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from trunkline import TrunklineError
from trunkline.api.bus import Bus
from trunkline.api.memory import utc_now
from trunkline.api.schedule import ScheduleRun, ScheduleState
from trunkline_pulse.schedule_request import describe_times, format_due
from trunkline_pulse.schedule_store import FoundSchedule, ScheduleStore
from trunkline_pulse.times import next_dues

SHOWN_DUES = 5


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule with its state, which is None until a gateway has read the file, and its next due times in UTC."""

    source: FoundSchedule
    state: ScheduleState | None
    dues: tuple[Any, ...]


async def list_views(bus: Bus, zone: ZoneInfo, block: str = "") -> list[ScheduleView]:
    """Return the schedules of one block, or of all, sorted. Raises BusError."""
    store = ScheduleStore(bus)
    blocks = [block] if block else await store.blocks()
    places = [place for one in blocks for place in await store.places(one)]
    states = await store.states()
    return [_view(found, states.get((found.block, found.name)), zone) for found in await store.read(places)]


async def find_schedule(store: ScheduleStore, name: str, block: str) -> FoundSchedule:
    """Return the schedule of this name. Raises BusError, and TrunklineError if there is none or more than one."""
    blocks = [block] if block else await store.blocks()
    found = await store.read([(one, name) for one in blocks if (one, name) in await store.places(one)])
    if not found:
        raise TrunklineError(
            f"There is no schedule {name!r}{f' in block {block}' if block else ''}.",
            hint='"trunkline schedules list" shows the schedules there are.',
        )
    if len(found) > 1:
        names = " and ".join(one.block for one in found)
        raise TrunklineError(f"The blocks {names} have a schedule {name!r}.", hint="Name one with --block.")
    return found[0]


async def find_view(bus: Bus, zone: ZoneInfo, name: str, block: str) -> ScheduleView:
    """Return the view of one schedule. Raises as ``find_schedule``."""
    store = ScheduleStore(bus)
    found = await find_schedule(store, name, block)
    return _view(found, await store.state(found.block, found.name), zone)


def view_as_json(view: ScheduleView) -> dict[str, Any]:
    """Return the view as data."""
    found, state = view.source, view.state
    return {
        "block": found.block,
        "name": found.name,
        "problem": found.problem,
        "schedule": None if found.schedule is None else msgspec.to_builtins(found.schedule),
        "next": [due.isoformat() for due in view.dues],
        "runs": [] if state is None else [msgspec.to_builtins(run) for run in reversed(state.runs)],
    }


def view_row(view: ScheduleView, zone: ZoneInfo) -> tuple[str, ...]:
    """Return the row of a table."""
    found, state, schedule = view.source, view.state, view.source.schedule
    own = schedule.zone(zone) if schedule is not None else zone
    last = _describe_run(state.runs[-1], own) if state is not None and state.runs else ""
    if schedule is None:
        return found.block, found.name, "", "", last, "must be corrected"
    due = format_due(view.dues[0], own) if view.dues else ("paused" if not schedule.enabled else "never")
    return found.block, found.name, schedule.type, describe_times(schedule), last, due


def view_text(view: ScheduleView, zone: ZoneInfo) -> str:
    """Return the text of ``trunkline schedules show``."""
    found, schedule = view.source, view.source.schedule
    own = schedule.zone(zone) if schedule is not None else zone
    lines = [found.file.path, "", found.file.content.rstrip(), ""]
    if found.problem:
        lines += [f"It does not run: {found.problem}", ""]
    elif schedule is not None and not schedule.enabled:
        lines += ["It is paused.", ""]
    else:
        lines += ["Next:", *(f"  {format_due(due, own)}" for due in view.dues)]
        lines += [] if view.dues else ["  never"]
    runs = view.state.runs if view.state is not None else ()
    lines += ["Runs:", *(f"  {_describe_run(run, own)}" for run in reversed(runs))]
    return "\n".join(lines + ([] if runs else ["  none"]))


def _view(found: FoundSchedule, state: ScheduleState | None, zone: ZoneInfo) -> ScheduleView:
    schedule = found.schedule
    dues = (
        next_dues(schedule, utc_now(), zone, SHOWN_DUES) if schedule is not None and schedule.enabled else []
    )
    return ScheduleView(found, state, tuple(dues))


def _describe_run(run: ScheduleRun, zone: ZoneInfo) -> str:
    count = f" ({run.count} times)" if run.count > 1 else ""
    why = f": {run.detail}" if run.detail else ""
    turn = f", turn {run.turn}" if run.turn else ""
    return f"{format_due(run.due_at, zone)} {run.outcome}{count}{why}{turn}"
