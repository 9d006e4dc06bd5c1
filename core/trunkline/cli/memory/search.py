"""``trunkline memory search``: searches memory."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, with_memory
from trunkline.cli.time_type import LocalTime

if TYPE_CHECKING:
    from trunkline.contracts.memory.search import MemoryHit, MemoryHits

KINDS = ("file", "document", "turn", "chunk", "fact")
EXAMPLES = """
trunkline memory search "climbing frame"
trunkline memory search "what did we decide last Tuesday" --why
trunkline memory search deploy --kind chunk --tag work --since 2026-05-01
trunkline memory search todo --names
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("words", nargs=-1, required=True, metavar="QUERY")
@click.option("--path", default="", help="Only files below this folder.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only hits of this kind; repeatable."
)
@click.option("--tag", "tags", multiple=True, help="Only hits with this tag; repeatable.")
@click.option(
    "--speaker", default="", help="Only messages of this speaker: a name, or user, assistant, tool."
)
@click.option("--conversation", default="", help="Only in this conversation.")
@click.option("--since", type=LocalTime(), help="Only messages since this time (local).")
@click.option("--until", type=LocalTime(), help="Only messages before this time (local).")
@click.option(
    "--confidence",
    default=0.0,
    type=click.FloatRange(0, 1),
    help="Only hits of at least this confidence, from 0 to 1.",
)
@click.option(
    "--limit",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="The largest number of results.",
)
@click.option("--names", is_flag=True, help="Search file names instead of text.")
@click.option("--why", is_flag=True, help="Show the signals that each hit was ranked by.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    words: tuple[str, ...],
    path: str,
    kinds: tuple[str, ...],
    tags: tuple[str, ...],
    speaker: str,
    conversation: str,
    since: datetime | None,
    until: datetime | None,
    confidence: float,
    limit: int,
    names: bool,
    why: bool,
    as_json: bool,
) -> int:
    """Search memory, best first. QUERY needs no quotes. The exit status is 1 when nothing is found."""
    import msgspec

    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.search import SearchMemory
    from trunkline.contracts.memory.subjects import MEMORY_SEARCH

    request = msgspec.convert(
        {
            "query": " ".join(words), "path": path, "limit": limit, "kind": "filename" if names else "content",
            "kinds": kinds, "tags": tags, "speaker": speaker, "conversation": conversation,
            "since": since, "until": until,
            "min_confidence": confidence,
        },
        SearchMemory,
    )  # fmt: skip
    found = with_memory(lambda bus: bus.call(MEMORY_SEARCH, request, timeout=COMMAND_SECONDS))
    if as_json:
        print_json(found.hits)
    else:
        _show(found, names=names, why=why)
    return 0 if found.hits else 1


def _show(hits: "MemoryHits", *, names: bool, why: bool) -> None:
    from trunkline.cli.output import print_text

    if not hits.hits:
        click.echo("Nothing found.", err=True)
    for hit in hits.hits:
        print_text(hit.path if names else f"{_place(hit)}: {_speaker(hit)}{hit.content.strip()}")
        for one in hit.why if why else ():
            print_text(
                f"    {one.signal:<11}{'+' if one.is_additive else '×'} {one.weight:<8g}{one.detail}".rstrip()
            )
    if why and not names:
        click.echo(hits.searched, err=True)


def _speaker(hit: "MemoryHit") -> str:
    return f"{hit.speaker}: " if hit.kind == "turn" and hit.speaker else ""


def _place(hit: "MemoryHit") -> str:
    return f"{hit.path}:{hit.line}" + (f" (page {hit.page})" if hit.page else "")
