"""Tells the owner of background tasks that have ended while their agent did not look.

The record of a task in the home says whether its end is known, so a worker that dies leaves it to the next one. The
notice's id follows from the task, so each channel tells it once. Of a task that somebody ended nobody is told.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import anyio.to_thread

from trunkline import LifespanContext
from trunkline.api.bus import Backoff, Bus
from trunkline.api.channel import Sentence, TellOwner, hand_to_channels
from trunkline.api.sandbox import DetachedProgram
from trunkline_shell.tasks import TaskStore, describe_task

log = logging.getLogger(__name__)

LOOK_SECONDS, LONGEST_PAUSE = 2.0, 60.0
"""Seconds between two looks; twice as many after each while a channel does not take a notice."""

AGENT_SECONDS = 5.0
"""Seconds that an agent which waits for a task has to see its end."""

NEWS = timedelta(days=1)
"""How long an end is told. A channel that does not run by then is given up."""

KNOWN = frozenset({"cancelled", "block", "panic"})
"""Reasons why somebody ended a task, and so knows of its end."""


class ProgramNotices:
    """A lifespan of each tools worker. ``channels`` are the enabled ones."""

    def __init__(self, store: TaskStore, channels: Sequence[str]) -> None:
        self._store = store
        self._channels = channels

    @asynccontextmanager
    async def __call__(self, context: LifespanContext) -> AsyncIterator[None]:
        """Tell while the worker runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run, context.bus)
            yield
            tasks.cancel_scope.cancel()

    async def _run(self, bus: Bus) -> None:
        backoff = Backoff(LOOK_SECONDS, LONGEST_PAUSE)
        while True:
            try:
                untold = await anyio.to_thread.run_sync(self._untold)
                if all([await self._tell(bus, *one) for one in untold]):
                    backoff.reset()
            except OSError as error:
                log.warning("the ends of background tasks are told later: %s", error)
            await backoff.sleep()

    async def _tell(self, bus: Bus, block: str, record: DetachedProgram, at: datetime) -> bool:
        """Hand the end of a task to the channels; report whether all of them have it."""
        message = TellOwner(
            block=block,
            text=describe_task(record),
            sentences=(Sentence("shell.ended", {"block": block}),),
            kind="task",
            notice=f"program-{block}-{record.name}",
            at=at,
        )
        if await hand_to_channels(bus, self._channels, message):
            return False
        await anyio.to_thread.run_sync(record.note_told)
        return True

    def _untold(self) -> list[tuple[str, DetachedProgram, datetime]]:
        """Return the tasks of which the owner is to be told, each with its block and the time of its end."""
        found = []
        for block in self._store.blocks():
            for record in self._store.of_block(block):
                if not record.is_told and (at := _told_since(record)) is not None:
                    found.append((block, record, at))
        return found


def _told_since(record: DetachedProgram) -> datetime | None:
    """Return the end of a task of which the owner is to be told; None for any other task."""
    now = datetime.now(UTC)
    if record.status() == "running":
        return None
    ending = record.exit_record()
    if ending is None:
        return now if _is_lost_lately(record, now) else None
    is_news = ending.at + timedelta(seconds=AGENT_SECONDS) < now < ending.at + NEWS
    return ending.at if is_news and ending.killed not in KNOWN else None


def _is_lost_lately(record: DetachedProgram, now: datetime) -> bool:
    """Report whether a task may have been lost within the last day. The time at which that happened is not known."""
    order = record.spec()
    return order is not None and now < order.at + timedelta(seconds=order.seconds) + NEWS
