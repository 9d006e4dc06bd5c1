"""``trunkline memory show``: prints a file, current or at a version."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, FILES, VERSIONS, with_memory


@click.command(
    cls=Command, examples="trunkline memory show AGENT.md\ntrunkline memory show AGENT.md --version 1f3a9c2"
)
@click.argument("path")
@click.option("--version", help="Print this version of the file (see history).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: str, version: str | None, as_json: bool) -> None:
    """Print a file of memory."""
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.files import ReadMemory
    from trunkline.contracts.memory.subjects import MEMORY_READ

    request = ReadMemory(path=path, version=version)
    file = with_memory(
        lambda bus: bus.call(MEMORY_READ, request, timeout=COMMAND_SECONDS),
        hint=VERSIONS if version else FILES,
    )
    if as_json:
        print_json(file)
    else:
        print_text(file.content, nl=not file.content.endswith("\n"))
