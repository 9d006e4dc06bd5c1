"""The changes that a person makes to a schedule by commands."""

from trunkline import TrunklineError
from trunkline.api.bus import Bus
from trunkline.api.memory import MEMORY_WRITE_MANY, OWNER, WriteManyMemory, utc_now
from trunkline.api.schedule import SCHEDULE_DUE, ScheduleDue
from trunkline_pulse.schedule_file import with_enabled
from trunkline_pulse.schedule_store import READ_SECONDS, Place, ScheduleStore
from trunkline_pulse.schedule_views import find_schedule


async def run_now(bus: Bus, name: str, block: str) -> Place:
    """Let a gateway run a schedule once. Raises BusError, and TrunklineError as ``find_schedule`` and for a file that
    must be corrected.
    """
    found = await find_schedule(ScheduleStore(bus), name, block)
    if found.schedule is None:
        raise TrunklineError(f"The schedule cannot run. {found.problem}", hint="Correct the file.")
    due = ScheduleDue(block=found.block, name=found.name, due_at=utc_now(), by_hand=True)
    await bus.append(SCHEDULE_DUE, due, block=found.block, schedule=found.name)
    return found.block, found.name


async def switch_schedule(bus: Bus, name: str, block: str, enabled: bool) -> Place:
    """Pause or resume a schedule. Raises as ``run_now``."""
    found = await find_schedule(ScheduleStore(bus), name, block)
    try:
        text = with_enabled(found.file.content, enabled)
    except ValueError as error:
        raise TrunklineError(f"{found.file.path}: {error}.", hint="Correct the file.") from error
    verb = "resume" if enabled else "pause"
    request = WriteManyMemory(
        files={found.file.path: text},
        expected={found.file.path: found.file.hash},
        actor=OWNER,
        reason=f"{verb} the schedule {found.name} of {found.block}",
    )
    await bus.call(MEMORY_WRITE_MANY, request, timeout=READ_SECONDS)
    return found.block, found.name


async def remove_schedule(bus: Bus, name: str, block: str) -> Place:
    """Delete the file of a schedule. Raises BusError, and TrunklineError as ``find_schedule``."""
    found = await find_schedule(ScheduleStore(bus), name, block)
    request = WriteManyMemory(
        files={},
        gone=(found.file.path,),
        expected={found.file.path: found.file.hash},
        actor=OWNER,
        reason=f"remove the schedule {found.name} of {found.block}",
    )
    await bus.call(MEMORY_WRITE_MANY, request, timeout=READ_SECONDS)
    return found.block, found.name
