"""``trunkline memory stats``: the contents of the search index."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import with_memory

if TYPE_CHECKING:
    from trunkline.contracts.memory.index import IndexStats


@click.command(cls=Command, examples="trunkline memory stats\ntrunkline memory stats --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Show the contents of the search index and the progress of its vectors."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.index import GetIndexStats
    from trunkline.contracts.memory.subjects import MEMORY_INDEX_STATS

    stats = with_memory(lambda bus: bus.call(MEMORY_INDEX_STATS, GetIndexStats(), timeout=600.0))
    if as_json:
        print_json(stats)
    else:
        show(stats)


def show(stats: "IndexStats") -> None:
    """Print the statistics as text."""
    kinds = ", ".join(f"{kind}: {count}" for kind, count in stats.kinds.items())
    click.echo(f"{stats.passages} passages of {stats.files} files can be found ({kinds or 'nothing yet'}).")
    click.echo(f"Words     {stats.words} stems; languages: {', '.join(stats.languages) or 'none yet'}")
    click.echo(
        f"Size      {stats.size / 1_048_576:.1f} MiB; it is derived data, and deleting it loses nothing"
    )
    click.echo(f"Vectors   {_vectors(stats)}")


def _vectors(stats: "IndexStats") -> str:
    vectors = stats.vectors
    if vectors is None:
        return "none: words alone are searched, since no embedder is chosen ([memory] embedder)"
    said = f"{vectors.ready} of {stats.passages} passages, by {vectors.model} ({vectors.embedder})"
    return f"{said}; {vectors.fault}" if vectors.fault else said
