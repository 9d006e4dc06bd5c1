"""``trunkline memory search``: where something is said."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached import with_memory


@click.command(
    cls=Command, examples='trunkline memory search "climbing frame"\ntrunkline memory search todo --names'
)
@click.argument("query")
@click.option("--path", default="", help="Only under this folder.")
@click.option(
    "--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many at most."
)
@click.option("--names", is_flag=True, help="Search names instead of text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(query: str, path: str, limit: int, names: bool, as_json: bool) -> int:
    """Search memory, best first. Leaves with 1 when nothing is found."""
    from trunkline.cli.output import json_out
    from trunkline.messages.memory import SearchMemory
    from trunkline.subjects import MEMORY_SEARCH

    wish = SearchMemory(query=query, path=path, limit=limit, kind="filename" if names else "content")
    hits = with_memory(lambda bus: bus.call(MEMORY_SEARCH, wish, timeout=60.0)).hits
    if as_json:
        json_out(hits)
    elif not hits:
        click.echo("Nothing found.", err=True)
    for hit in () if as_json else hits:
        click.echo(hit.path if names else f"{hit.path}:{hit.line}: {hit.content.strip()}")
    return 0 if hits else 1
