"""``trunkline memory diff``: the differences between two versions."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, FILES, VERSIONS, with_memory

EXAMPLES = """
trunkline memory diff MEMORY.md
trunkline memory diff MEMORY.md 1f3a9c2
trunkline memory diff "" 1f3a9c2 8d04e1b --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("path", default="")
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the files, their lines, and the text.")
def command(path: str, old: str | None, new: str | None, as_json: bool) -> None:
    """Show the differences of PATH between the versions OLD and NEW.

    Without NEW, the command compares OLD with the present version. Without OLD, it shows the last change of PATH.
    Without PATH, or with "", it compares all of memory.
    """
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.history import DiffMemory
    from trunkline.contracts.memory.subjects import MEMORY_DIFF

    found = with_memory(
        lambda bus: bus.call(MEMORY_DIFF, DiffMemory(path=path, old=old, new=new), timeout=COMMAND_SECONDS),
        hint=VERSIONS if old else FILES,
    )
    if as_json:
        print_json(found)
        return
    print_text(found.text, nl=False)
    if not found.files:
        click.echo("Nothing differs.", err=True)
    if not found.whole:
        click.echo(f"The output is limited: only some of {len(found.files)} files are shown.", err=True)
