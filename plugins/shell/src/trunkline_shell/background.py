"""Background tasks: programs that go on while the agent does something else, and when the worker ends (MN-F15).

A task belongs to its block. It is known by eight hexadecimal digits, and found again by its record in the home.
"""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Annotated

import anyio
import anyio.to_thread
from msgspec import Meta

from trunkline import ApprovalDetail, BlockPath, Tool, ToolContext, ToolError, tool
from trunkline.detached import Ending, Record, now, records
from trunkline_shell.commands import argv_of, shown
from trunkline_shell.settings import ShellSettings

TAIL, LONGEST_TAIL = 50, 2_000
LONGEST_OUTPUT = 50_000
LONGEST_WAIT = 300
MOST_KEPT = 100
"""Tasks of a block that are kept when they have ended; of more the oldest go."""

LOOK_SECONDS = 0.25
END_SECONDS = 10.0

TaskId = Annotated[str, Meta(pattern="^[0-9a-f]{8}$", description="The task, such as 0a1b2c3d.")]
Lines = Annotated[int, Meta(ge=1, le=LONGEST_TAIL)]
Seconds = Annotated[int, Meta(ge=1, le=LONGEST_WAIT)]


class Tasks:
    """The tasks of a home, each in the folder of its block."""

    def __init__(self, home: Path, settings: ShellSettings) -> None:
        self._folder = home / "tasks"
        self.settings = settings

    def of(self, block: str) -> list[Record]:
        """Those of a block, the oldest first."""
        return records(self._folder / block)

    def find(self, block: str, task: str) -> Record:
        """One of a block. Raises ToolError with those that there are."""
        found = {record.name: record for record in self.of(block)}
        if task not in found:
            known = ", ".join(found) or "none"
            raise ToolError(f"This block has no background task {task} on this machine. There are: {known}.")
        return found[task]

    @asynccontextmanager
    async def place(self, block: str) -> AsyncIterator[Path]:
        """A folder for one more; nobody else takes one meanwhile. Raises ToolError when too many run already."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await _locked(handle)
            blocks = [entry for entry in self._folder.iterdir() if entry.is_dir()]
            running = [one for entry in blocks for one in records(entry) if one.standing() == "running"]
            if len(running) >= self.settings.tasks:
                raise ToolError(
                    f"{len(running)} background tasks run already, and no more may. Wait for one, or cancel it. "
                    f"Those of this block: {', '.join(one.name for one in self.of(block)) or 'none'}."
                )
            self._forget(block)
            yield self._folder / block / token_hex(4)
        finally:
            os.close(handle)

    def _forget(self, block: str) -> None:
        ended = [record for record in self.of(block) if record.standing() != "running"]
        for record in ended[: max(0, len(ended) - MOST_KEPT)]:
            record.remove()


async def _locked(handle: int) -> None:
    """Take the lock; whoever has it, in this process or another, is not waited for in its way."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await anyio.sleep(LOOK_SECONDS)
        else:
            return


def background_tools(home: Path, settings: ShellSettings) -> list[Tool]:
    """The seven tools."""
    tasks = Tasks(home, settings)
    return [_start(tasks), *_looking(tasks), _wait(tasks), *_ending(tasks)]


def _start(tasks: Tasks) -> Tool:
    settings = tasks.settings

    @tool(effect="exec", argv="command", timeout=120.0)
    async def start_background_task(
        context: ToolContext, command: list[str] | str, folder: BlockPath = "", network: bool = False
    ) -> str:
        """Begin a program in the sandbox that goes on by itself, such as a long build or a server. Tells its task id.

        Args:
            command: The program and its arguments as a list, which no shell reads; or the text of a script for sh.
            folder: The folder of the workspace that it begins in; empty for the workspace itself.
            network: Whether it needs the network, which a person must have permitted.
        """
        argv, place = argv_of(command), context.folder(folder)
        async with tasks.place(context.block) as record:
            await context.sandbox.leave(
                argv,
                record=record,
                workspace=context.workspace,
                env=settings.env,
                folder=place,
                limits=settings.limits(settings.task_seconds, network),
                label=f"{context.block} task {record.name}",
            )
        return f"Background task {record.name} runs."

    @start_background_task.shows
    def _shown(context: ToolContext, command: list[str] | str, folder: str, network: bool) -> ApprovalDetail:
        return shown(command, folder, network)

    return start_background_task


def _looking(tasks: Tasks) -> list[Tool]:
    @tool(effect="read")
    def background_task_status(context: ToolContext, task: TaskId) -> str:
        """Tell whether a background task runs, and how it ended.

        Args:
            task: The task's id.
        """
        return told(tasks.find(context.block, task))

    @tool(effect="read")
    def background_task_output(context: ToolContext, task: TaskId, lines: Lines = TAIL) -> str:
        """Tell the last lines that a background task printed, and whether it runs.

        Args:
            task: The task's id.
            lines: How many lines.
        """
        record = tasks.find(context.block, task)
        standing = told(record)
        return f"{standing}\n{record.tail(lines, LONGEST_OUTPUT) or 'It has printed nothing.'}"

    @tool(effect="read")
    def list_background_tasks(context: ToolContext) -> str:
        """List the background tasks of this block, the newest first."""
        found = [told(record) for record in reversed(tasks.of(context.block))]
        return "\n".join(found) or "There are no background tasks."

    return [background_task_status, background_task_output, list_background_tasks]


def _wait(tasks: Tasks) -> Tool:
    @tool(effect="read", timeout=LONGEST_WAIT + 30.0)
    async def wait_background_task(
        context: ToolContext, task: TaskId, timeout: Seconds = LONGEST_WAIT
    ) -> str:
        """Wait until a background task has ended, and tell how; that it still runs after the time is no error.

        Args:
            task: The task's id.
            timeout: How many seconds to wait at most.
        """
        record = tasks.find(context.block, task)
        await _until_ended(record, timeout)
        return f"{told(record)}\n{record.tail(TAIL, LONGEST_OUTPUT)}".rstrip()

    return wait_background_task


def _ending(tasks: Tasks) -> list[Tool]:
    @tool(effect="write", idempotent=True)
    async def cancel_background_task(context: ToolContext, task: TaskId) -> str:
        """End a background task, with all that it began.

        Args:
            task: The task's id.
        """
        record = tasks.find(context.block, task)
        if record.standing() == "running":
            record.cancel("cancelled")
            await _until_ended(record, END_SECONDS)
        return told(record)

    @tool(effect="write", idempotent=True)
    def clear_completed_tasks(context: ToolContext) -> str:
        """Forget the background tasks of this block that have ended, with their output."""
        ended = [record for record in tasks.of(context.block) if record.standing() != "running"]
        for record in ended:
            record.remove()
        return f"Forgot {len(ended)} background tasks that had ended."

    return [cancel_background_task, clear_completed_tasks]


async def _until_ended(record: Record, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        while await anyio.to_thread.run_sync(record.standing) == "running":  # noqa: ASYNC110  another process ends it
            await anyio.sleep(LOOK_SECONDS)


_KILLED = {
    "timeout": "ended, because its time was over",
    "memory": "ended, because it needed more memory than it may have",
    "panic": "ended by panic",
    "cancelled": "cancelled",
    "stopped": "ended, because its keeper was stopped, as by a shutdown of the machine",
}


def told(record: Record) -> str:
    """A task in a line: id, how it stands, what was run, when."""
    order, standing = record.order(), record.standing()
    what = " ".join(order.argv).replace("\n", " ") if order else "unknown"
    began = f", begun {order.at:%Y-%m-%d %H:%M:%S} UTC" if order else ""
    return f"{record.name}: {_standing(record, standing)}{began}: {what[:200]}"


def _standing(record: Record, standing: str) -> str:
    ending = record.ending()
    if standing == "running":
        order = record.order()
        return f"running for {(now() - order.at).total_seconds():.0f} s" if order else "running"
    if ending is None:
        return (
            "lost: the machine was restarted or the process that kept it was killed, and it with that. How far it came "
            "is unknown; it is not begun again by itself"
        )
    return _ended(ending)


def _ended(ending: Ending) -> str:
    if ending.fault:
        return f"never begun: {ending.fault}"
    if ending.killed:
        return _KILLED.get(ending.killed, "ended from outside")
    return f"ended with exit code {ending.exit_code}"
