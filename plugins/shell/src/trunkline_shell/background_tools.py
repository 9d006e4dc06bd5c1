"""The tools for background tasks: programs that go on while the agent does something else, and when the worker ends."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from trunkline import ApprovalDetail, BlockPath, Tool, ToolContext, tool
from trunkline_shell.command_tool import command_argv, preview_command
from trunkline_shell.settings import ShellSettings
from trunkline_shell.tasks import END_SECONDS, TaskStore, show_task, wait_until_ended

TAIL, LONGEST_TAIL = 50, 2_000
LONGEST_OUTPUT = 50_000
LONGEST_WAIT = 300

TaskId = Annotated[str, Meta(pattern="^[0-9a-f]{8}$", description="The task, such as 0a1b2c3d.")]
Lines = Annotated[int, Meta(ge=1, le=LONGEST_TAIL)]
Seconds = Annotated[int, Meta(ge=1, le=LONGEST_WAIT)]


def background_tools(home: Path, settings: ShellSettings) -> list[Tool]:
    """The seven tools."""
    tasks = TaskStore(home, settings)
    return [_start_tool(tasks), *_view_tools(tasks), _wait_tool(tasks), *_end_tools(tasks)]


def _start_tool(tasks: TaskStore) -> Tool:
    settings = tasks.settings

    @tool(effect="exec", argv="command", timeout=120.0)
    async def start_background_task(
        context: ToolContext, command: list[str] | str, folder: BlockPath = "", network: bool = False
    ) -> str:
        """Start a program in the sandbox that runs in the background, such as a long build or a server. Returns its
        task id.

        Args:
            command: The program and its arguments as a list, which no shell reads; or the text of a script for sh.
            folder: The folder of the workspace that it starts in; empty for the workspace itself.
            network: Whether it needs the network, which a person must have permitted.
        """
        argv, place = command_argv(command), context.folder(folder)
        async with tasks.reserve(context.block) as record:
            await context.sandbox.leave(
                argv,
                record=record,
                workspace=context.workspace,
                env=settings.env,
                folder=place,
                limits=settings.limits(settings.task_timeout, network),
                label=f"{context.block} task {record.name}",
            )
        return f"Background task {record.name} runs."

    @start_background_task.previewer
    def _shown(context: ToolContext, command: list[str] | str, folder: str, network: bool) -> ApprovalDetail:
        return preview_command(command, folder, network)

    return start_background_task


def _view_tools(tasks: TaskStore) -> list[Tool]:
    @tool(effect="read")
    def background_task_status(context: ToolContext, task: TaskId) -> str:
        """Report whether a background task runs, and how it ended.

        Args:
            task: The task's id.
        """
        return show_task(tasks.find(context.block, task))

    @tool(effect="read", untrusted_output=True)
    def background_task_output(context: ToolContext, task: TaskId, lines: Lines = TAIL) -> str:
        """Show the last lines that a background task printed, and whether it runs.

        Args:
            task: The task's id.
            lines: How many lines.
        """
        record = tasks.find(context.block, task)
        line = show_task(record)
        return f"{line}\n{record.tail(lines, LONGEST_OUTPUT) or 'It has printed nothing.'}"

    @tool(effect="read")
    def list_background_tasks(context: ToolContext) -> str:
        """List the background tasks of this block, the newest first."""
        found = [show_task(record) for record in reversed(tasks.of_block(context.block))]
        return "\n".join(found) or "There are no background tasks."

    return [background_task_status, background_task_output, list_background_tasks]


def _wait_tool(tasks: TaskStore) -> Tool:
    @tool(effect="read", timeout=LONGEST_WAIT + 30.0, untrusted_output=True)
    async def wait_background_task(
        context: ToolContext, task: TaskId, timeout: Seconds = LONGEST_WAIT
    ) -> str:
        """Wait until a background task has ended, and report how. A task that still runs after the timeout is no error.

        Args:
            task: The task's id.
            timeout: How many seconds to wait at most.
        """
        record = tasks.find(context.block, task)
        await wait_until_ended(record, timeout)
        return f"{show_task(record)}\n{record.tail(TAIL, LONGEST_OUTPUT)}".rstrip()

    return wait_background_task


def _end_tools(tasks: TaskStore) -> list[Tool]:
    @tool(effect="write", idempotent=True)
    async def cancel_background_task(context: ToolContext, task: TaskId) -> str:
        """End a background task, with its child processes.

        Args:
            task: The task's id.
        """
        record = tasks.find(context.block, task)
        if record.status() == "running":
            record.request_cancel("cancelled")
            await wait_until_ended(record, END_SECONDS)
        return show_task(record)

    @tool(effect="write", idempotent=True)
    def clear_completed_tasks(context: ToolContext) -> str:
        """Forget the background tasks of this block that have ended, with their output."""
        ended = [record for record in tasks.of_block(context.block) if record.status() != "running"]
        for record in ended:
            record.remove()
        return f"Forgot {len(ended)} background tasks that had ended."

    return [cancel_background_task, clear_completed_tasks]
