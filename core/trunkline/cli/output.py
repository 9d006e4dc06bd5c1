"""Plain output of commands: tables and JSON. No colours, no widgets, nothing that takes time to import."""

import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec


def say(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print what others wrote: exactly, but for what a terminal would obey when there is one."""
    from trunkline.text import printable

    at_terminal = (sys.stderr if err else sys.stdout).isatty()
    click.echo(printable(text) if at_terminal else text, nl=nl, err=err, color=True)  # click would strip some


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = ()) -> None:
    """Print rows in columns; the last column is not padded."""
    lines = [tuple(header), *map(tuple, rows)] if header else [*map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        say("  ".join(cells).rstrip())


def json_out(value: Any) -> None:
    """Print a value as indented JSON."""
    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def done(sentence: str) -> None:
    """Print what was done."""
    click.echo(sentence)
