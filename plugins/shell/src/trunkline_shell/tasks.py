"""The background tasks of a home: lists, adds and describes their records. Starts and ends none.

A task belongs to its block. It is known by eight hexadecimal digits, and found again by its record in the home.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from trunkline import ToolError
from trunkline.api.sandbox import DetachedProgram, ExitRecord, ProgramSpec, list_programs, programs_folder
from trunkline.api.text import format_local_time
from trunkline_shell.settings import ShellSettings

MOST_KEPT = 100
"""Tasks of a block that are kept when they have ended; of more the oldest go."""

POLL_SECONDS = 0.25

END_SECONDS = 10.0
"""Seconds that a task has to end after it was asked to."""


class TaskStore:
    """The tasks of a home, each in the folder of its block."""

    def __init__(self, home: Path, settings: ShellSettings) -> None:
        self._home, self._folder = home, home / "tasks"
        self.settings = settings

    def blocks(self) -> list[str]:
        """The blocks that have had tasks."""
        with suppress(OSError):
            return sorted(entry.name for entry in self._folder.iterdir() if entry.is_dir())
        return []

    def of_block(self, block: str) -> list[DetachedProgram]:
        """Return the tasks of a block, oldest first."""
        return list_programs(programs_folder(self._home, block))

    def find(self, block: str, task: str) -> DetachedProgram:
        """Return a task of a block. Raises ToolError with the existing ones."""
        found = {record.name: record for record in self.of_block(block)}
        if task not in found:
            known = ", ".join(found) or "none"
            raise ToolError(
                f"This block has no background task {task} on this machine. There are: {known}.",
                kind="not_found",
            )
        return found[task]

    @asynccontextmanager
    async def reserve(self, block: str) -> AsyncIterator[Path]:
        """A folder for one more; nobody else takes one meanwhile. Raises ToolError when too many run already."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _lock(handle)
            running = [
                one for name in self.blocks() for one in self.of_block(name) if one.status() == "running"
            ]
            if len(running) >= self.settings.max_tasks:
                raise ToolError(
                    f"{len(running)} background tasks run already, and no more may. Wait for one, or cancel it. "
                    f"Those of this block: {', '.join(one.name for one in self.of_block(block)) or 'none'}.",
                    kind="rate_limited",
                )
            self._forget(block)
            yield programs_folder(self._home, block) / token_hex(4)
        finally:
            os.close(handle)

    def _forget(self, block: str) -> None:
        ended = [record for record in self.of_block(block) if record.status() != "running"]
        for record in ended[: max(0, len(ended) - MOST_KEPT)]:
            record.remove()


async def _lock(handle: int) -> None:
    """Take the lock; whoever has it, in this process or another, is not waited for in its way."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await anyio.sleep(POLL_SECONDS)
        else:
            return


async def wait_until_ended(record: DetachedProgram, seconds: float) -> None:
    """Wait until a task has ended, so many seconds at most."""
    with anyio.move_on_after(seconds):
        while await anyio.to_thread.run_sync(record.status) == "running":  # noqa: ASYNC110  another process ends it
            await anyio.sleep(POLL_SECONDS)


def show_task(record: DetachedProgram) -> str:
    """Describe a task to its agent. Of an end that its agent knows the owner is not told."""
    if record.status() != "running":
        with suppress(OSError):  # then the owner is told, too
            record.note_told()
    return describe_task(record)


_KILLED = {
    "timeout": "ended, because it reached its time limit",
    "memory": "ended, because it exceeded its memory limit",
    "disk": "ended, because the workspace or its disk exceeded its size limit",
    "unmeasured": "ended, because its resource use could not be measured",
    "panic": "ended by panic",
    "cancelled": "cancelled",
    "block": "ended, because its block was stopped",
    "stopped": "ended, because its supervisor was stopped, as by a shutdown of the machine",
}


def describe_task(record: DetachedProgram, redact: Callable[[str], str] = str) -> str:
    """A task in a line: id, how it stands, what was run, when. ``redact`` removes secrets, before a part of one is cut
    off, which is not recognised.
    """
    order = record.spec()
    began = f", started {format_local_time(order.at, seconds=True)}" if order else ""
    command = redact(command_line(order))
    return f"{record.name}: {redact(describe_state(record))}{began}: {command[:200]}"


def command_line(order: ProgramSpec | None) -> str:
    """Return the command line of a task on one line."""
    return " ".join(" ".join(order.argv).split()) if order else "unknown"


def describe_state(record: DetachedProgram) -> str:
    """Report whether it runs, and how it ended, in words."""
    status, order, ending = record.status(), record.spec(), record.exit_record()
    if status == "running":
        return f"running for {(datetime.now(UTC) - order.at).total_seconds():.0f} s" if order else "running"
    if ending is None:
        return (
            "lost: the machine was restarted, or its supervisor was killed and the task with it. How far it came "
            "is unknown; it is not restarted automatically"
        )
    return _describe_ending(ending)


def _describe_ending(ending: ExitRecord) -> str:
    if ending.fault and ending.killed:
        return f"broke off, and how far it came is unknown: {ending.fault}"
    if ending.fault:
        return f"never started: {ending.fault}"
    if ending.killed:
        return _KILLED.get(ending.killed, "ended from outside")
    return f"ended with exit code {ending.exit_code}"
