"""Plain output of commands: tables and JSON. No colours, no widgets, nothing that takes time to import."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = ()) -> None:
    """Print rows in columns; the last column is not padded."""
    lines = [tuple(header), *map(tuple, rows)] if header else [*map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def json_out(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def done(sentence: str) -> None:
    """Print what was done."""
    click.echo(sentence)
