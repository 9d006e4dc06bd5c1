"""``trunkline memory list``: the names in a folder."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, FILES, with_memory


@click.command(cls=Command, examples="trunkline memory list\ntrunkline memory list blocks/main --recursive")
@click.argument("path", default="")
@click.option("--recursive", "-r", is_flag=True, help="Also list the folders below it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: str, recursive: bool, as_json: bool) -> None:
    """List the files in a folder of memory."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table
    from trunkline.contracts.memory.files import ListMemory
    from trunkline.contracts.memory.subjects import MEMORY_LIST

    request = ListMemory(path=path, recursive=recursive)
    entries = with_memory(
        lambda bus: bus.call(MEMORY_LIST, request, timeout=COMMAND_SECONDS), hint=FILES
    ).entries
    if as_json:
        print_json(entries)
        return
    print_table(
        [
            (format_local_time(entry.modified_at), str(entry.size), entry.path)
            if entry.kind == "file"
            else (format_local_time(entry.modified_at), "", entry.path + "/")
            for entry in entries
        ],
        header=("CHANGED", "BYTES", "NAME"),
    )
