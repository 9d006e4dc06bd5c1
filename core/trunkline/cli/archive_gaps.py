"""Saying what an archive of memory could not take along."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.archives.manifest import Gap

SHOWN = 20
"""Gaps that are printed; the archive's manifest.json names all."""


def gaps_of(archive: Path) -> "tuple[Gap, ...]":
    """What an archive says is not in it."""
    from trunkline._util.archives.reader import read_manifest

    manifest = read_manifest(archive)
    return manifest.gaps if manifest else ()


def tell_gaps(gaps: "tuple[Gap, ...]") -> None:
    """Print what is not in an archive to standard error, a line for each."""
    import click

    for gap in gaps[:SHOWN]:
        click.echo(f"Not among the files: {gap.what}: {gap.why}.", err=True)
    if len(gaps) > SHOWN:
        click.echo(f"{len(gaps) - SHOWN} more are named in the archive's manifest.json.", err=True)
