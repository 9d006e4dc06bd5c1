"""Tells the owner of background tasks that have ended while their agent did not look.

The record of a task in the home says whether its end is known, so a worker that dies leaves it to the next one. The
notice's id follows from the task, so each channel tells it once. Of a task that somebody ended nobody is told.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import anyio
import anyio.to_thread

from trunkline import LifespanContext
from trunkline.api.bus import Backoff, Bus
from trunkline.api.channel import NoticeRound, Sentence, TellOwner
from trunkline.api.sandbox import DetachedProgram
from trunkline.api.text import Redactor
from trunkline_shell.tasks import TaskStore, describe_task

log = logging.getLogger(__name__)

LOOK_SECONDS, LONGEST_PAUSE = 2.0, 60.0
"""Seconds between two looks; twice as many after each while a channel does not take a notice."""

AGENT_TIME = timedelta(seconds=5)
"""The time that an agent which waits for a task has to see its end."""

NEWS = timedelta(days=1)
"""How long an end is told. A channel that does not run by then is given up."""

KNOWN = frozenset({"cancelled", "block", "panic"})
"""Reasons why somebody ended a task, and so knows of its end."""


class ProgramNotices:
    """A lifespan of each tools worker. It hands notices to ``channels``, without what ``secrets`` finds: a chat service
    reads them.
    """

    def __init__(self, store: TaskStore, channels: Sequence[str], secrets: Redactor) -> None:
        self._store = store
        self._channels = channels
        self._secrets = secrets

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
                handing = NoticeRound(bus, self._channels)
                if all([await self._tell(handing, *one) for one in untold]):
                    backoff.reset()
            except OSError as error:
                log.warning("the ends of background tasks are told later: %s", error)
            await backoff.sleep()

    async def _tell(self, handing: NoticeRound, block: str, record: DetachedProgram, at: datetime) -> bool:
        """Hand the end of a task to the channels; report whether all of them have it."""
        message = TellOwner(
            block=block,
            text=describe_task(record, self._secrets.redact),
            sentences=(Sentence("shell.ended", {"block": block}),),
            kind="task",
            notice=f"program-{block}-{record.name}",
            at=at,
        )
        if await handing.hand(message):
            return False
        try:
            await anyio.to_thread.run_sync(record.note_told)
        except OSError as error:  # the other tasks are told
            log.warning("that the owner knows of a background task is noted later: %s", error)
            return False
        return True

    def _untold(self) -> list[tuple[str, DetachedProgram, datetime]]:
        """Return the tasks of which the owner is to be told, each with its block and the time of its end. One of which
        nobody is to be told is marked, so that it is not read again.
        """
        found = []
        for block in self._store.blocks():
            for record in self._store.of_block(block):
                if record.is_told or (at := _end_of(record)) is None:
                    continue
                if _is_news(record, at):
                    found.append((block, record, at))
                else:
                    with suppress(OSError):  # then it is read again
                        record.note_told()
        return found


def _end_of(record: DetachedProgram) -> datetime | None:
    """Return when a task ended, or was lost at the latest; None if it runs, or if its agent may still look."""
    if record.status() == "running":
        return None
    now, ending, order = datetime.now(UTC), record.exit_record(), record.spec()
    if ending is not None:
        return ending.at if ending.at < now - AGENT_TIME else None
    if order is None or now - AGENT_TIME < order.at:  # it is being started
        return None
    return min(now, order.at + timedelta(seconds=order.seconds))


def _is_news(record: DetachedProgram, at: datetime) -> bool:
    ending = record.exit_record()
    is_known = ending is not None and ending.killed in KNOWN
    return not is_known and datetime.now(UTC) < at + NEWS
