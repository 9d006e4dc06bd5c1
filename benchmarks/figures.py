"""Percentiles, tables that a terminal can show, and a line of progress. No measuring in here."""

import sys
from collections.abc import Iterable, Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; ``share`` is between 0 and 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds: float) -> str:
    """Rounded as far as it is worth reading."""
    return f"{seconds * 1000:.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table with aligned columns."""
    lines = [list(map(str, head)), *(list(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    drawn = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([drawn[0], rule, *drawn[1:]])


def progress(text: str) -> None:
    """Say on standard error how far it is: on one line where there is a terminal. "" wipes that line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    elif text:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
