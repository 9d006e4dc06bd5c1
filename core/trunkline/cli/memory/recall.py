"""``trunkline memory recall``: searches the chunks for an answer to a question."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, with_memory
from trunkline.contracts.actors import OWNER

if TYPE_CHECKING:
    from trunkline.contracts.memory.chunks import RecalledChunk

EXAMPLES = """
trunkline memory recall "where does Anna work"
trunkline memory recall beans --block garden --limit 3 --why
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, required=True, metavar="QUERY")
@click.option("--block", help="Only chunks that this block's agent would find. Default: all.")
@click.option("--tag", "tags", multiple=True, help="Only chunks with this tag; repeatable.")
@click.option(
    "--limit",
    default=5,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The largest number of results.",
)
@click.option(
    "--confidence",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Only chunks of at least this confidence.",
)
@click.option("--why", is_flag=True, help="Show the score of each signal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    words: tuple[str, ...],
    block: str | None,
    tags: tuple[str, ...],
    limit: int,
    confidence: float,
    why: bool,
    as_json: bool,
) -> int:
    """Search the chunks, best first. No model is called. The exit status is 1 when nothing is found."""
    from trunkline.cli.memory.chunks import line
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.chunks import Recall
    from trunkline.contracts.memory.subjects import MEMORY_RECALL

    request = Recall(
        query=" ".join(words),
        actor=OWNER,
        block=block,
        max_results=limit,
        min_confidence=confidence,
        tags=tags,
    )
    found = with_memory(lambda bus: bus.call(MEMORY_RECALL, request, timeout=COMMAND_SECONDS))
    if as_json:
        print_json(found)
    elif not found.chunks:
        click.echo("Nothing found.", err=True)
    for one in () if as_json else found.chunks:
        print_text(line(one.chunk))
        if why:
            click.echo(f"    {one.score:.2f}: {_why(one)}")
    if why and not as_json:
        click.echo(found.searched, err=True)
    return 0 if found.chunks else 1


def _why(one: "RecalledChunk") -> str:
    """Explain a hit: the score of each signal, and the factors that raise or lower the sum."""
    parts = ", ".join(f"{name} {part:.2f}" for name, part in one.why.items())
    factors = "".join(f"; times {factor:.2f} for {name}" for name, factor in one.factors.items())
    return parts + factors
