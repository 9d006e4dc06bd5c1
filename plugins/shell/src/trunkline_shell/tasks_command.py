"""``trunkline tasks``: the background tasks of this machine. Reads their records, so it works without a running
platform; to end one it asks the task's supervisor."""

from datetime import UTC, datetime
from typing import Any

import click

from trunkline import TrunklineError
from trunkline.api.cli import Command, Group
from trunkline.api.sandbox import DetachedProgram
from trunkline_shell.tasks import END_SECONDS, TaskStore, command_line, describe_state, wait_until_ended

EXAMPLES = """
trunkline tasks list
trunkline tasks show 0a1b
trunkline tasks stop 0a1b
"""

LINES, MOST_LINES = 50, 100_000
MOST_CHARACTERS = 16 * 1024 * 1024
"""Of output: more than a record keeps."""

SCOPE_HINT = "Tasks belong to the machine they were started on, and to the home folder (TRUNKLINE_HOME)."


def tasks_command(tasks: TaskStore) -> click.Command:
    """The group, for the tasks of a home."""

    @click.group("tasks", cls=Group, examples=EXAMPLES)
    @click.pass_context
    def group(context: click.Context) -> None:
        """Show and stop the background tasks that agents started on this machine.

        A task continues when the platform stops. The first characters of an ID are enough if no other ID begins with
        them.
        """
        context.obj = tasks

    for verb in (_list, _show, _stop, _clear):
        group.add_command(verb)
    return group


@click.command(
    "list", cls=Command, examples="trunkline tasks list --running\ntrunkline tasks list --block main --json"
)
@click.option("--block", help="Only items of this block.")
@click.option("--running", is_flag=True, help="Only running tasks.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def _list(tasks: TaskStore, block: str | None, running: bool, as_json: bool) -> None:
    """List the tasks with their state, the newest first."""
    from trunkline import printable
    from trunkline.api.cli import print_json, print_table

    found = [
        one
        for one in _list_all(tasks)
        if block in (None, one[0]) and not (running and not _is_running(one[1]))
    ]
    if as_json:
        print_json({"tasks": [_task_json(*one) for one in found]})
    elif not found:
        where = f"of the block {block} here" if block else "here"
        click.echo(
            f"No background task {where} runs." if running else f"There are no background tasks {where}."
        )
    else:
        rows = [
            (
                record.name,
                name,
                _start_text(record),
                _short_state(record),
                _shorten(printable(_command_text(record))),
            )
            for name, record in found
        ]
        print_table(rows, header=("ID", "BLOCK", "STARTED", "STATE", "COMMAND"))


@click.command(
    "show", cls=Command, examples="trunkline tasks show 0a1b --lines 200\ntrunkline tasks show 0a1b --json"
)
@click.argument("id")
@click.option(
    "--lines",
    default=LINES,
    show_default=True,
    type=click.IntRange(1, MOST_LINES),
    help="The number of lines to show from the end of its output.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def _show(tasks: TaskStore, id: str, lines: int, as_json: bool) -> None:
    """Show one task and the end of its output."""
    from trunkline import printable
    from trunkline.api.cli import print_json, print_table

    block, record = _find_task(tasks, id)
    output = record.tail(lines, MOST_CHARACTERS)
    if as_json:
        print_json({**_task_json(block, record), "output": output})
        return
    order = record.spec()
    rows = [
        ("task", record.name),
        ("block", block),
        ("state", describe_state(record)),
        ("started", _start_text(record)),
        ("command", _command_text(record)),
    ]
    if order is not None:
        rows += [("folder", order.folder or "the workspace"), ("sandbox", order.backend)]
        rows += [("network", "yes" if order.network else "no")]
    print_table([(name, printable(value)) for name, value in rows])
    click.echo(f"\n{printable(output).rstrip()}" if output.strip() else "\nIt has printed nothing.")


@click.command(
    "stop", cls=Command, examples="trunkline tasks stop 0a1b\ntrunkline tasks stop 0a1b 7f3e --json"
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def _stop(tasks: TaskStore, ids: tuple[str, ...], as_json: bool) -> None:
    """Stop tasks, each with all processes that it started. A finished task does not change."""
    import anyio

    from trunkline import printable
    from trunkline.api.cli import print_json

    found = [_find_task(tasks, id) for id in ids]
    for _, record in found:
        if _is_running(record):
            record.request_cancel("cancelled")
    for _, record in found:
        anyio.run(wait_until_ended, record, END_SECONDS)
    if as_json:
        print_json({"tasks": [_task_json(*one) for one in found]})
    else:
        for _, record in found:
            click.echo(printable(f"{record.name}: {describe_state(record)}"))
    if still := [record.name for _, record in found if _is_running(record)]:
        raise TrunklineError(
            f"{', '.join(still)} did not end within {END_SECONDS:.0f} seconds.",
            hint='"trunkline panic" ends every program at once; "trunkline panic --release" lets agents go on.',
        )


@click.command("clear", cls=Command, examples="trunkline tasks clear --block main")
@click.option("--block", help="Only items of this block.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def _clear(tasks: TaskStore, block: str | None, as_json: bool) -> None:
    """Delete the records and output of finished tasks."""
    from trunkline.api.cli import print_json

    ended = [one for name, one in _list_all(tasks) if block in (None, name) and not _is_running(one)]
    for record in ended:
        record.remove()
    if as_json:
        print_json({"forgotten": [record.name for record in ended]})
    else:
        click.echo(f"Forgot {len(ended)} {'task' if len(ended) == 1 else 'tasks'} that had ended.")


def _list_all(tasks: TaskStore) -> list[tuple[str, DetachedProgram]]:
    """Each with its block, the newest first."""
    found = [(block, record) for block in tasks.blocks() for record in tasks.of_block(block)]
    return sorted(found, key=lambda one: _started_at(one[1]), reverse=True)


def _started_at(record: DetachedProgram) -> datetime:
    order = record.spec()
    return order.at if order else datetime.min.replace(tzinfo=UTC)


def _find_task(tasks: TaskStore, id: str) -> tuple[str, DetachedProgram]:
    found = [one for one in _list_all(tasks) if id and one[1].name.startswith(id)]
    if not found:
        raise TrunklineError(
            f"There is no background task {id!r} here.",
            hint=f'"trunkline tasks list" shows those there are. {SCOPE_HINT}',
        )
    if len(found) > 1:
        names = ", ".join(record.name for _, record in found)
        raise TrunklineError(f"{id!r} fits several tasks: {names}.", hint="Give more of the id.")
    return found[0]


def _task_json(block: str, record: DetachedProgram) -> dict[str, Any]:
    order, ending = record.spec(), record.exit_record()
    return {
        "id": record.name,
        "block": block,
        "state": record.status(),
        "since": order and order.at,
        "command": order and order.argv,
        "folder": order and order.folder,
        "sandbox": order and order.backend,
        "network": order and order.network,
        "seconds": order and order.seconds,
        "ended": ending and ending.at,
        "exit_code": ending and ending.exit_code,
        "killed": (ending and ending.killed) or None,
        "fault": (ending and ending.fault) or None,
    }


def _is_running(record: DetachedProgram) -> bool:
    return record.status() == "running"


def _start_text(record: DetachedProgram) -> str:
    from trunkline.api.text import format_local_time

    order = record.spec()
    return format_local_time(order.at, seconds=True) if order else "unknown"


def _short_state(record: DetachedProgram) -> str:
    """Return the state of a task without the reason."""
    return describe_state(record).partition(":")[0]


def _command_text(record: DetachedProgram) -> str:
    return command_line(record.spec())


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
