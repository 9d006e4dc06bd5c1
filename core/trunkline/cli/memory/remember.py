"""``trunkline memory remember``: stores a text as chunks."""

import sys

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, with_memory
from trunkline.contracts.actors import OWNER

EXAMPLES = """
trunkline memory remember "Anna works at the bakery" --tag people
trunkline memory remember --block garden --type decision "We plant beans in May"
trunkline memory remember --tag notes - < notes.txt
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("text")
@click.option("--block", help="Store it for this block only. Default: for all blocks.")
@click.option("--tag", "tags", multiple=True, help="A tag for the chunks; repeatable.")
@click.option(
    "--type",
    "kind",
    help="fact, preference, pattern, note, decision, or a plugin's type. Default: detected from the words.",
)
@click.option(
    "--confidence",
    default=0.7,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Confidence in the text, from 0 to 1.",
)
@click.option("--conversation", help="The conversation that it belongs to. Default: a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    text: str,
    block: str | None,
    tags: tuple[str, ...],
    kind: str | None,
    confidence: float,
    conversation: str | None,
    as_json: bool,
) -> int:
    """Store TEXT as chunks and print their ids; - reads standard input. The exit status is 1 when the text is blank."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.chunks import Remember
    from trunkline.contracts.memory.subjects import MEMORY_REMEMBER
    from trunkline_bus import new_id

    request = Remember(
        content=_piped() if text == "-" else text,
        actor=OWNER,
        conversation_id=conversation or new_id("hand"),
        block=block,
        tags=tags,
        confidence=confidence,
        chunk_type=kind,
        source="owner",
    )
    done = with_memory(lambda bus: bus.call(MEMORY_REMEMBER, request, timeout=COMMAND_SECONDS))
    if as_json:
        print_json(done)
    elif not done.success:
        click.echo(done.error, err=True)
    for chunk in () if as_json else done.chunk_ids:
        click.echo(chunk)
    return 0 if done.success else 1


def _piped() -> str:
    """Return the text from standard input. Raises click.UsageError for input that is not text."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("Standard input is not text in UTF-8 (iconv converts it).") from None
