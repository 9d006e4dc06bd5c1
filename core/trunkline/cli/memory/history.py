"""``trunkline memory history``: the changes of a path."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, FILES, with_memory


@click.command(cls=Command, examples="trunkline memory history AGENT.md --limit 5")
@click.argument("path", default="")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The largest number of results.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the text before each change.")
def command(path: str, limit: int, as_json: bool) -> None:
    """Show the changes of a file or folder, newest first."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table
    from trunkline.contracts.memory.history import MemoryHistory
    from trunkline.contracts.memory.subjects import MEMORY_HISTORY

    request = MemoryHistory(path=path, limit=limit)
    changes = with_memory(
        lambda bus: bus.call(MEMORY_HISTORY, request, timeout=COMMAND_SECONDS), hint=FILES
    ).changes
    if as_json:
        print_json(changes)
        return
    rows = [
        (
            change.version[:10],
            format_local_time(change.timestamp, seconds=True),
            change.author,
            _first(change.message),
        )
        for change in changes
    ]
    print_table(rows, header=("VERSION", "TIME", "BY", "WHAT"))


def _first(message: str) -> str:
    return message.split("\n", 1)[0]
