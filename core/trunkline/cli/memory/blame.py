"""``trunkline memory blame``: the author of each line of a file."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, FILES, VERSIONS, with_memory

if TYPE_CHECKING:
    from trunkline.contracts.memory.history import BlamedLines

EXAMPLES = """
trunkline memory blame MEMORY.md
trunkline memory blame MEMORY.md --lines 10-20
trunkline memory blame MEMORY.md --version 1f3a9c2 --json
"""


def _range(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int | None]:
    """Parse 12, 10-20 or 10-. Return the first and the last line, counted from 1; None as the last line means the
    end.
    """
    if value is None:
        return 1, None
    first, dash, last = value.partition("-")
    try:
        found = int(first), int(last) if last else None if dash else int(first)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a line nor a range of lines such as 10-20.") from None
    if found[0] < 1 or (found[1] is not None and found[1] < found[0]):
        raise click.BadParameter(
            f"{value!r}: lines are numbered from 1, and the last line must not precede the first."
        )
    return found


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("path")
@click.option("--lines", metavar="N-M", callback=_range, help="Only these lines, such as 10-20.")
@click.option("--version", help="Use this version of the file (see history).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with conversation and turn.")
def command(path: str, lines: tuple[int, int | None], version: str | None, as_json: bool) -> None:
    """Show for each line of a file who wrote it, when and in which conversation."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.history import BlameMemory
    from trunkline.contracts.memory.subjects import MEMORY_BLAME

    request = BlameMemory(path=path, version=version, first=lines[0], last=lines[1])
    found = with_memory(
        lambda bus: bus.call(MEMORY_BLAME, request, timeout=COMMAND_SECONDS),
        hint=VERSIONS if version else FILES,
    )
    if as_json:
        print_json(found)
        return
    if not found.spans:
        click.echo("There are no such lines.", err=True)
    width = max((len(_by(span)) for span in found.spans), default=0)
    for span in found.spans:
        for number, line in enumerate(span.lines, span.first):
            print_text(
                f"{span.version[:10]}  {_by(span):<{width}}  {format_local_time(span.timestamp)}  {number:>4}  {line}"
            )


def _by(span: "BlamedLines") -> str:
    return span.author + (f" in {span.conversation}" if span.conversation else "")
