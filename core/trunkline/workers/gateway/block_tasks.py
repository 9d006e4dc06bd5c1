"""Ends a block's background tasks. Each tools worker ends the tasks of its home. The gateway also ends the tasks of its
home, because a tools worker there may have crashed."""

from pathlib import Path

import anyio

from trunkline.contracts.tools.messages import EndTasks, TasksEnded
from trunkline.contracts.tools.subjects import END_TASKS
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.errors import ErrorCode
from trunkline.runtime.detached_programs import END_SECONDS, end_detached_programs
from trunkline.workers.gateway.errors import refusal
from trunkline_bus import Bus, BusError

WORKER_TIMEOUT = 15.0
"""Seconds to wait for a tools worker. A crashed worker is no longer listed by then."""

PAUSE = 0.2


class BlockTasks:
    """Ends background tasks.

    Methods raise Refusal, and BusError when the bus does not answer.
    """

    def __init__(self, bus: Bus, home: Path) -> None:
        self._bus = bus
        self._home = home

    async def end(self, block: str, *, forget: bool) -> tuple[str, ...]:
        """End the background tasks of a block and return the ids of those that ran.

        With ``forget`` their records are removed too. Refused with ``conflict`` when a task does not end, or
        when a tools worker does not answer.
        """
        replies: list[TasksEnded] = []
        silent: list[str] = []

        async def ask(worker: str) -> None:
            answer = await self._end_on_worker(worker, EndTasks(block=block, forget=forget))
            if answer is None:
                silent.append(worker)
            else:
                replies.append(answer)

        async with anyio.create_task_group() as tasks:
            for worker in await self._workers():
                tasks.start_soon(ask, worker)
        replies.append(await end_detached_programs(self._home, block, forget=forget))
        _check_ended(block, sorted({task for one in replies for task in one.running}), sorted(silent))
        return tuple(sorted({task for one in replies for task in one.ended}))

    async def _end_on_worker(self, worker: str, request: EndTasks) -> TasksEnded | None:
        """Return the answer of one worker: an empty answer when the worker has ended, None when the worker is live
        and does not answer."""
        with anyio.move_on_after(WORKER_TIMEOUT):
            while True:
                try:
                    return await self._bus.call(
                        END_TASKS, request, timeout=END_SECONDS + PAUSE, worker=worker
                    )
                except BusError:
                    if worker not in await self._workers():
                        return TasksEnded()
                await anyio.sleep(PAUSE)
        return None

    async def _workers(self) -> list[str]:
        beats = [entry.value for entry in await self._bus.kv(WORKER_BUCKET).entries() if entry.value]
        return [beat.id for beat in beats if beat.kind == "tools"]


def _check_ended(block: str, running: list[str], silent: list[str]) -> None:
    if running:
        raise refusal(
            ErrorCode.CONFLICT,
            f"Background tasks of the block {block!r} have not ended yet: {', '.join(running)}. Nothing else was done. "
            'Give the command again; "trunkline panic" ends every program at once.',
        )
    if silent:
        raise refusal(
            ErrorCode.CONFLICT,
            f"Background tasks of the block {block!r} may still run: the tools worker {', '.join(silent)} does not "
            "answer. Nothing else was done. Give the command again when the worker answers or has ended.",
        )
