"""The list of what is to do in a conversation: ``todos/CONVERSATION.md`` in the block's memory, Markdown's task list.

A person may edit it; lines that are no tasks are passed over, and go when the list is written anew.
"""

import re
from typing import Annotated, Literal

import msgspec

import trunkline
from trunkline import ToolError
from trunkline.api.memory import read_text, update_text

MOST, LONGEST = 200, 500
"""Tasks of a list, and characters of each."""

Status = Literal["pending", "in_progress", "completed"]

MARKS: dict[Status, str] = {"pending": " ", "in_progress": "~", "completed": "x"}
_STATUS: dict[str, Status] = {" ": "pending", "~": "in_progress", "x": "completed", "X": "completed"}
_TASK = re.compile(r"^\s*[-*]\s+\[([ ~xX])\]\s+(.+?)\s*$")


class Todo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to do."""

    content: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    status: Status = "pending"


@trunkline.tool(effect="write", idempotent=True, in_plan_mode=True, unbound_params=("todos",), derived=True)
async def todo_write(context: trunkline.ToolContext, todos: tuple[Todo, ...]) -> str:
    """Write the list of what is to do in this conversation, in place of the one before. For work of several steps: keep
    one task in_progress, and mark it completed as soon as it is.

    Args:
        todos: All tasks in order, each with content and status (pending, in_progress, completed).
    """
    if len(todos) > MOST:
        raise ToolError(
            f"A list has {MOST} tasks at most; these are {len(todos)}. Nothing was written.",
            kind="invalid_arguments",
        )
    tasks = [Todo(content=" ".join(todo.content.split()), status=todo.status) for todo in todos]
    if any(not task.content for task in tasks):
        raise ToolError("A task needs a text. Nothing was written.", kind="invalid_arguments")
    await update_text(context.memory, _path(context), lambda before: format_tasks(tasks))
    running = sum(task.status == "in_progress" for task in tasks)
    warning = f"\n{running} tasks are in_progress; work on one at a time." if running > 1 else ""
    return _describe_tasks(tasks) + warning


@trunkline.tool(effect="read", in_plan_mode=True, untrusted_output=True, derived=True)
async def todo_read(context: trunkline.ToolContext) -> str:
    """Read the list of what is to do in this conversation."""
    return _describe_tasks(parse_tasks(await read_text(context.memory, _path(context))))


@trunkline.tool(effect="write", idempotent=True, in_plan_mode=True)
async def todo_clear(context: trunkline.ToolContext) -> str:
    """Empty the list of what is to do in this conversation. History keeps it."""
    await update_text(context.memory, _path(context), lambda before: format_tasks([]) if before else before)
    return "The list is empty."


def format_tasks(tasks: list[Todo]) -> str:
    """The list as its file."""
    return "# To do\n\n" + "".join(f"- [{MARKS[task.status]}] {task.content}\n" for task in tasks)


def parse_tasks(text: str) -> list[Todo]:
    """The tasks of a file, whoever wrote it."""
    found = [_TASK.match(line) for line in text.splitlines()]
    return [Todo(content=task[2], status=_STATUS[task[1]]) for task in found if task]


def _describe_tasks(tasks: list[Todo]) -> str:
    if not tasks:
        return "The list is empty."
    done = sum(task.status == "completed" for task in tasks)
    lines = "".join(f"\n- [{MARKS[task.status]}] {task.content}" for task in tasks)
    return f"{done} of {len(tasks)} done:{lines}"


def _path(context: trunkline.ToolContext) -> str:
    return f"todos/{context.conversation}.md"
