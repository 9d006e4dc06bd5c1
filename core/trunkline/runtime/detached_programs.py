"""Ends the detached programs of a block in this home, by their records."""

from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.contracts.sandbox.detached_program import DetachedProgram, list_programs, programs_folder
from trunkline.contracts.tools.messages import TasksEnded

END_SECONDS = 10.0
"""Seconds that programs may take to end after the request."""

POLL_SECONDS = 0.1

END_REASON = "block"
"""The reason in the record of a program that was ended with its block."""


async def end_detached_programs(home: Path, block: str, *, forget: bool) -> TasksEnded:
    """End the detached programs of a block with their child processes; with ``forget`` remove their records
    too."""
    found = await anyio.to_thread.run_sync(list_programs, programs_folder(home, block))
    running_before = [record for record in found if await _is_running(record)]
    for record in running_before:
        with suppress(OSError):  # a program that cannot be asked to end is reported as running
            record.request_cancel(END_REASON)
    with anyio.move_on_after(END_SECONDS):
        while [one for one in running_before if await _is_running(one)]:  # noqa: ASYNC110  other processes end them
            await anyio.sleep(POLL_SECONDS)
    running = [record for record in running_before if await _is_running(record)]
    if forget and not running:
        await anyio.to_thread.run_sync(_forget, programs_folder(home, block), found)
    ended = tuple(record.name for record in running_before if record not in running)
    return TasksEnded(ended=ended, running=tuple(record.name for record in running))


async def _is_running(record: DetachedProgram) -> bool:
    return await anyio.to_thread.run_sync(record.status) == "running"


def _forget(place: Path, programs: list[DetachedProgram]) -> None:
    for record in programs:
        record.remove()
    with suppress(OSError):  # the folder never existed, or contains other files
        place.rmdir()
