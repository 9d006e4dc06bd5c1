"""Tables as Markdown."""

from collections.abc import Iterable, Iterator, Sequence

ROWS = 40
"""Rows in one section. Each section begins with the table's header, so that its rows can be understood alone."""


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header. Rows may differ in length."""
    width = max((len(row) for row in rows), default=0)
    if width == 0:
        return ""
    lines = [_row(row, width) for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def table_portions(rows: Iterable[Sequence[str]]) -> Iterator[tuple[int, int, str]]:
    """The first and last row, counted from 1, and the table of them, under the header of the first row."""
    header: Sequence[str] = ()
    portion: list[Sequence[str]] = []
    first = number = 0
    for number, row in enumerate(rows, start=1):
        if number == 1:
            header = row
            continue
        first = first or number
        portion.append(row)
        if len(portion) == ROWS:
            yield first, number, markdown_table([header, *portion])
            portion, first = [], 0
    if portion or number == 1:
        yield first or 1, number, markdown_table([header, *portion])


def _row(row: Sequence[str], width: int) -> str:
    cells = [cell.replace("|", "\\|").replace("\n", " ").strip() for cell in row]
    return "| " + " | ".join(cells + [""] * (width - len(cells))) + " |"
