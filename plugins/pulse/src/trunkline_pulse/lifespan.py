"""The services of schedules in each gateway: arms schedules, gives due ones their turns, and records the runs."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import ObjectSendStream, TaskStatus

from trunkline import LifespanContext, RemoteFault, Unavailable
from trunkline.api.bus import Bus, BusError
from trunkline.api.gateway import GatewayClient
from trunkline.api.memory import BLOCKS_FOLDER
from trunkline.api.sandbox import KillSwitch
from trunkline.api.schedule import MEMORY_CHANGED, SCHEDULE_CHANNEL, SCHEDULES_FOLDER, schedule_of
from trunkline_pulse.armer import Armer
from trunkline_pulse.due_service import DueService
from trunkline_pulse.run_recorder import RunRecorder
from trunkline_pulse.run_starter import RunStarter
from trunkline_pulse.schedule_store import Place, ScheduleStore

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
CHECK_SECONDS = 300.0
"""Seconds between two comparisons of all files with what is armed, in case an event was lost."""

FAILURES = (BusError, RemoteFault, Unavailable)


class PulseLifespan:
    """A lifespan of the gateway. ``zone`` is the time zone of schedules that name none."""

    def __init__(self, home: Path, zone: ZoneInfo, channels: Sequence[str]) -> None:
        self._home = home
        self._zone = zone
        self._channels = channels

    @asynccontextmanager
    async def __call__(self, context: LifespanContext) -> AsyncIterator[None]:
        """Run the services while the gateway runs."""
        bus = context.bus
        store = ScheduleStore(bus)
        client = GatewayClient(bus, SCHEDULE_CHANNEL)
        recorder = RunRecorder(bus, store, client, self._channels)
        armer = Armer(bus, store, self._zone, recorder.report_problem)
        starter = RunStarter(client)
        dues = DueService(bus, store, armer, starter, recorder, KillSwitch(self._home), self._zone)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_follow_files, bus, armer)
            tasks.start_soon(_until_cancelled, dues.run)
            tasks.start_soon(_until_cancelled, recorder.run)
            yield
            tasks.cancel_scope.cancel()


async def _until_cancelled(job: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await job()
        except BusError as error:
            log.info("schedules wait for the bus: %s", error)
        await anyio.sleep(RETRY_SECONDS)


async def _follow_files(bus: Bus, armer: Armer) -> None:
    """Compare all files with what is armed at the start and from time to time, and each file when it changes."""
    send, receive = anyio.create_memory_object_stream[set[Place] | None](1_000)
    async with anyio.create_task_group() as tasks, send, receive:
        await tasks.start(_listen, bus, send)
        pending: set[Place] | None = None  # None means all
        while True:
            try:
                await (armer.sync_all() if pending is None else armer.sync(pending))
            except FAILURES as error:
                log.info("schedules are armed when the bus and memory answer: %s", error)
                await anyio.sleep(RETRY_SECONDS)
                continue
            pending = None
            with anyio.move_on_after(CHECK_SECONDS):
                pending = await receive.receive()


async def _listen(
    bus: Bus,
    send: ObjectSendStream[set[Place] | None],
    *,
    task_status: TaskStatus[None] = TASK_STATUS_IGNORED,
) -> None:
    """Report the schedules whose files change; None for any, after a gap and when a whole folder changes."""
    async with bus.listen(MEMORY_CHANGED, part="files") as messages:
        task_status.started()
        async for message in messages:
            paths = message.data.paths
            places = {place for place in map(schedule_of, paths) if place is not None}
            if message.gap or any(map(_is_folder, paths)):
                await send.send(None)
            elif places:
                await send.send(places)


def _is_folder(path: str) -> bool:
    """Report whether a path is a block or the folder of its schedules, which were moved or deleted as a whole."""
    first, *rest = path.split("/")
    return first == BLOCKS_FOLDER and (len(rest) == 1 or rest[1:] == [SCHEDULES_FOLDER])
