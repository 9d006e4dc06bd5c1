"""Reads the files of schedules from memory, and reads and changes their states on the bus."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trunkline import MemoryFile, RemoteFault
from trunkline.api.bus import Bus, KeyValueEntry, SequenceConflict, key_of
from trunkline.api.files import SettingsFileError
from trunkline.api.memory import (
    BLOCKS_FOLDER,
    MEMORY_LIST,
    MEMORY_READ_MANY,
    ListMemory,
    ReadManyMemory,
    is_block_name,
)
from trunkline.api.schedule import (
    SCHEDULE_BUCKET,
    ScheduleState,
    schedule_of,
    schedule_path,
    schedules_folder,
)
from trunkline_pulse.schedule import Schedule
from trunkline_pulse.schedule_file import read_schedule

READ_SECONDS = 20.0
BATCH = 200
"""The number of files of one request."""

Place = tuple[str, str]
"""The block and the name of a schedule."""


@dataclass(frozen=True, slots=True)
class FoundSchedule:
    """The file of a schedule. ``schedule`` is None if a person must correct the file, which ``problem`` explains."""

    block: str
    name: str
    file: MemoryFile
    schedule: Schedule | None
    problem: str = ""


class ScheduleStore:
    """The files and states of schedules. Methods raise BusError if memory or the bus does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._bucket = bus.kv(SCHEDULE_BUCKET)

    async def blocks(self) -> list[str]:
        """Return the names of all blocks, sorted."""
        entries = await self._entries(BLOCKS_FOLDER)
        return sorted(name for name in (path.rpartition("/")[2] for path in entries) if is_block_name(name))

    async def places(self, block: str) -> list[Place]:
        """Return the schedules of a block, sorted."""
        found = (schedule_of(path) for path in await self._entries(schedules_folder(block)))
        return sorted(place for place in found if place is not None)

    async def find(self, block: str, name: str) -> FoundSchedule | None:
        """Return a schedule; None if there is no such file."""
        return next(iter(await self.read([(block, name)])), None)

    async def read(self, places: Iterable[Place]) -> list[FoundSchedule]:
        """Return those of the schedules whose files exist."""
        paths = [schedule_path(block, name) for block, name in places]
        found: list[FoundSchedule] = []
        for begin in range(0, len(paths), BATCH):
            request = ReadManyMemory(paths=tuple(paths[begin : begin + BATCH]))
            reply = await self._bus.call(MEMORY_READ_MANY, request, timeout=READ_SECONDS, repeatable=True)
            found += [_found(file) for file in reply.files]
        return found

    async def state(self, block: str, name: str) -> ScheduleState | None:
        """Return the state of a schedule; None if it has none."""
        entry = await self.entry(block, name)
        return None if entry is None else entry.value

    async def states(self) -> dict[Place, ScheduleState]:
        """Return the states of all schedules."""
        values = (entry.value for entry in await self._bucket.entries())
        return {(state.block, state.name): state for state in values if state is not None}

    async def entry(self, block: str, name: str) -> KeyValueEntry[ScheduleState] | None:
        """Return the state of a schedule with its revision; None if it has none."""
        return await self._bucket.get(key_of(block, name))

    async def replace(self, entry: KeyValueEntry[ScheduleState], state: ScheduleState) -> bool:
        """Replace the state of ``entry``. Return False if somebody else has changed it since."""
        try:
            await self._bucket.update(entry.key, state, entry.revision)
        except SequenceConflict:
            return False
        return True

    async def create(self, state: ScheduleState) -> bool:
        """Add the state of a schedule. Return False if it has one."""
        try:
            await self._bucket.create(key_of(state.block, state.name), state)
        except SequenceConflict:
            return False
        return True

    async def change(
        self, block: str, name: str, edit: Callable[[ScheduleState], ScheduleState]
    ) -> ScheduleState | None:
        """Change a state by a function of it, and return the new one; None if the schedule has no state."""
        while True:
            entry = await self.entry(block, name)
            if entry is None or entry.value is None:
                return None
            state = edit(entry.value)
            if state == entry.value or await self.replace(entry, state):
                return state

    async def forget(self, block: str, name: str) -> None:
        """Delete the state of a schedule."""
        await self._bucket.delete(key_of(block, name))

    async def _entries(self, folder: str) -> list[str]:
        """Return the paths in a folder of memory. A folder that does not exist has none."""
        try:
            reply = await self._bus.call(
                MEMORY_LIST, ListMemory(path=folder), timeout=READ_SECONDS, repeatable=True
            )
        except RemoteFault as fault:
            if fault.code == "not_found":
                return []
            raise
        return [entry.path for entry in reply.entries]


def _found(file: MemoryFile) -> FoundSchedule:
    place = schedule_of(file.path)
    if place is None:
        raise ValueError(f"{file.path} is no file of a schedule")
    if file.unread:
        return FoundSchedule(*place, file, None, f"{file.path}: {file.unread}")
    try:
        return FoundSchedule(*place, file, read_schedule(file.path, file.content))
    except SettingsFileError as error:
        return FoundSchedule(*place, file, None, str(error))
