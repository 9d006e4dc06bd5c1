"""Prints the output of commands: tables, JSON, coloured words. Its imports are fast."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import click
import msgspec


def print_text(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print text from outside. On a terminal, control characters are made harmless; otherwise the text is printed
    unchanged.
    """
    from trunkline._util.text import printable

    at_terminal = (sys.stderr if err else sys.stdout).isatty()
    click.echo(
        printable(text) if at_terminal else text, nl=nl, err=err, color=True
    )  # click.echo removes some escapes


def terminal_width(*, err: bool = False) -> int | None:
    """Return the number of columns of a terminal; None for a pipe."""
    stream = sys.stderr if err else sys.stdout
    return os.get_terminal_size(stream.fileno()).columns - 1 if stream.isatty() else None


def fit_text(text: str, *, err: bool = False, hang: int | None = None) -> str:
    """Wrap the text to the width of the terminal; return it unchanged if the stream is not a terminal."""
    from trunkline._util.text import wrap_text

    width = terminal_width(err=err)
    return text if width is None else wrap_text(text, width, hang)


def colourize(text: str, colour: str | None) -> str:
    """Colour the text if standard output is a terminal with colours and ``NO_COLOR`` is not set."""
    shows = (
        sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR")
    )
    return click.style(text, fg=colour) if colour and shows else text


def print_table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = ()) -> None:
    """Print rows in columns; the last column is not padded. Each row is one line, whatever its cells contain. A row
    that is too long for a terminal is continued below its last column, if there is room.
    """
    from trunkline._util.text import one_line

    lines = [[one_line(cell) for cell in row] for row in ([header, *rows] if header else rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    last, room = sum(widths[:-1]) + 2 * (len(widths) - 1), terminal_width() or 0
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print_text(fit_text("  ".join(cells).rstrip(), hang=last if last <= room // 2 else 4))


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    print_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_done(sentence: str) -> None:
    """Print what was done."""
    click.echo(sentence)
