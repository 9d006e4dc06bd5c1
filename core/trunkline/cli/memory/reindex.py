"""``trunkline memory reindex``: rebuilds the search index."""

import sys
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import with_memory

if TYPE_CHECKING:
    from trunkline.contracts.memory.index import IndexProgress, IndexStats
    from trunkline_bus import Bus

IDLE_SECONDS = 600.0
"""Seconds that the worker may be silent."""


@click.command(cls=Command, examples="trunkline memory reindex\ntrunkline memory reindex --vectors")
@click.option("--vectors", is_flag=True, help="Also rebuild the vectors; an embedder may cost money.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(vectors: bool, as_json: bool) -> None:
    """Rebuild the search index from committed files.

    The index updates and repairs itself, so this is rarely needed. With an embedder, the command also waits for missing
    vectors.
    """
    from trunkline.cli.memory.stats import show
    from trunkline.cli.output import print_json

    stats = with_memory(lambda bus: _reindex(bus, vectors, as_json or not sys.stderr.isatty()))
    if as_json:
        print_json(stats)
    else:
        show(stats)


async def _reindex(bus: "Bus", vectors: bool, quiet: bool) -> "IndexStats":
    from trunkline.contracts.memory.index import IndexStats, RebuildIndex
    from trunkline.contracts.memory.subjects import MEMORY_REINDEX
    from trunkline.errors import Unavailable

    request = RebuildIndex(vectors=vectors)
    async with bus.call_streaming(MEMORY_REINDEX, request, idle_timeout=IDLE_SECONDS) as replies:
        async for said in replies:
            if isinstance(said, IndexStats):
                if not quiet:
                    click.echo("\r\x1b[K", nl=False, err=True)
                return said
            if not quiet:
                _show(said)
    raise Unavailable("Memory ended before the index was done.", hint="It continues at the next start.")


def _show(progress: "IndexProgress") -> None:
    did = {"files": "Indexed {} of {} files", "vectors": "Made vectors of {} of {} passages"}[progress.stage]
    click.echo(f"\r\x1b[K{did.format(progress.done, progress.total)} ", nl=False, err=True)
