"""The task service: shows the background tasks of this home with their output, and ends them.

The records are those that agents' programs leave in the home. A tools worker of another host has a home of its own,
whose tasks are not seen here.
"""

from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.sandbox.detached_program import DetachedProgram, list_programs, programs_folder
from trunkline.errors import ErrorCode
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.detached_programs import END_SECONDS
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.sender import Sender

POLL_SECONDS = 0.1

BlockTask = tuple[str, DetachedProgram]
"""A task with the name of its block."""


class TaskService:
    """Methods raise Refusal: ``not_found`` for a task of a block that the sender may not read, and ``forbidden`` for
    ending one in a block that the sender may only read.

    Guarantees: no path is made from what the sender names; it is compared with the names that are there.
    """

    def __init__(self, home: Path, access: BlockAccess) -> None:
        self._home = home
        self._access = access

    async def list_tasks(self, sender: Sender) -> list[BlockTask]:
        """Return the tasks of the blocks that the sender may read, the newest first."""
        rights = await self._access.rights_of(sender.identity)
        blocks = await anyio.to_thread.run_sync(self._blocks)
        found: list[BlockTask] = []
        for block in (one for one in blocks if rights.may(TokenScope.READ, one)):
            programs = await anyio.to_thread.run_sync(list_programs, programs_folder(self._home, block))
            found += [(block, program) for program in programs]
        return sorted(found, key=_started, reverse=True)

    async def find(self, block: str, id: str, sender: Sender) -> BlockTask:
        """Return a task."""
        for one in await self.list_tasks(sender):
            if (one[0], one[1].name) == (block, id):
                return one
        raise refusal(ErrorCode.NOT_FOUND)

    async def stop(self, block: str, id: str, sender: Sender) -> BlockTask:
        """End a task with all processes that it started, and return it. A task that has ended does not change.

        Refused with ``conflict`` if it has not ended within some seconds.
        """
        task = await self.find(block, id, sender)
        await self._access.require(sender.identity, TokenScope.OPERATE, block)
        _, program = task
        if await anyio.to_thread.run_sync(program.status) == "running":
            await anyio.to_thread.run_sync(program.request_cancel, "cancelled")
        with anyio.move_on_after(END_SECONDS):
            while await anyio.to_thread.run_sync(program.status) == "running":  # noqa: ASYNC110  another process ends it
                await anyio.sleep(POLL_SECONDS)
            return task
        raise refusal(ErrorCode.CONFLICT, "It did not end yet. STOP ends every program at once.")

    def _blocks(self) -> list[str]:
        try:
            return [entry.name for entry in (self._home / "tasks").iterdir() if entry.is_dir()]
        except OSError:  # no task was ever started
            return []


def _started(task: BlockTask) -> float:
    order = task[1].spec()
    return order.at.timestamp() if order else 0.0
