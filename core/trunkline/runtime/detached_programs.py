"""Ends what a block left running in this home: programs that outlive their turn and their worker, by their records."""

from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.contracts.sandbox.detached_program import DetachedProgram, list_programs, programs_folder
from trunkline.contracts.tools.messages import TasksEnded

END_SECONDS = 10.0
"""What programs are given to end, once they are asked to."""

LOOK_SECONDS = 0.1

END_REASON = "block"
"""What a record says of a program that was ended with its block."""


async def end_detached_programs(home: Path, block: str, *, forget: bool) -> TasksEnded:
    """End the programs of a block, each with all that it began, and with ``forget`` take their records away."""
    found = await anyio.to_thread.run_sync(list_programs, programs_folder(home, block))
    begun = [record for record in found if await _is_running(record)]
    for record in begun:
        with suppress(OSError):  # one that cannot be told goes on, and is told of
            record.request_cancel(END_REASON)
    with anyio.move_on_after(END_SECONDS):
        while [one for one in begun if await _is_running(one)]:  # noqa: ASYNC110  other processes end them
            await anyio.sleep(LOOK_SECONDS)
    running = [record for record in begun if await _is_running(record)]
    if forget and not running:
        await anyio.to_thread.run_sync(_forget, programs_folder(home, block), found)
    ended = tuple(record.name for record in begun if record not in running)
    return TasksEnded(ended=ended, running=tuple(record.name for record in running))


async def _is_running(record: DetachedProgram) -> bool:
    return await anyio.to_thread.run_sync(record.status) == "running"


def _forget(place: Path, found: list[DetachedProgram]) -> None:
    for record in found:
        record.remove()
    with suppress(OSError):  # it was never there, or somebody else's files lie in it
        place.rmdir()
