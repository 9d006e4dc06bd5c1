"""Reports the data that an archive of memory does not contain."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.archives.manifest import ImportGap

MAX_SHOWN = 20
"""Largest number of gaps that are printed. The archive's manifest.json lists all."""


def read_gaps(archive: Path) -> "tuple[ImportGap, ...]":
    """Return the gaps that an archive's manifest declares."""
    from trunkline._util.archives.reader import read_manifest

    manifest = read_manifest(archive)
    return manifest.gaps if manifest else ()


def print_gaps(gaps: "tuple[ImportGap, ...]") -> None:
    """Print the missing data to standard error, one line each."""
    import click

    for gap in gaps[:MAX_SHOWN]:
        click.echo(f"Missing: {gap.what}: {gap.why}.", err=True)
    if len(gaps) > MAX_SHOWN:
        click.echo(f"The archive's manifest.json lists {len(gaps) - MAX_SHOWN} more.", err=True)
