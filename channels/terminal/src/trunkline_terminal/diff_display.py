"""A unified diff in two columns: what goes on the left, what comes on the right. Pure functions."""

from collections.abc import Callable, Iterator

from trunkline.api.text import QUOTED, display_width, wrap_text
from trunkline_terminal import text_format

LEAST_WIDTH = 100
"""Columns from which on a diff is shown in two columns."""

Paint = Callable[[str, str], str]
"""Gives a text a tone."""

Row = tuple[str, str, bool]
"""What stands on the left, what on the right, and whether the two differ."""


def two_columns(diff: str, width: int, paint: Paint) -> str:
    """Return the lines of a diff in two columns, each with the mark of quoted text. Nothing is left out: a line that
    is too long goes on below. Lines outside the hunks take the whole width."""
    column = (width - len(QUOTED) - 3) // 2
    return "\n".join(line for part in _parts(diff.split("\n")) for line in _drawn(part, width, column, paint))


def _parts(lines: list[str]) -> Iterator[str | Row]:
    gone: list[str] = []
    come: list[str] = []
    in_hunk = False
    for line in lines:
        in_hunk = in_hunk or line.startswith("@@")
        if in_hunk and line[:1] == "-":
            if come:
                yield from _pairs(gone, come)
            gone.append(line[1:])
        elif in_hunk and line[:1] == "+":
            come.append(line[1:])
        else:
            yield from _pairs(gone, come)
            yield (line[1:], line[1:], False) if in_hunk and line[:1] == " " else line
    yield from _pairs(gone, come)


def _pairs(gone: list[str], come: list[str]) -> Iterator[Row]:
    """Yield what goes beside what comes, and forget both."""
    for number in range(max(len(gone), len(come))):
        left = f"-{gone[number]}" if number < len(gone) else ""
        right = f"+{come[number]}" if number < len(come) else ""
        yield left, right, True
    gone.clear()
    come.clear()


def _drawn(part: str | Row, width: int, column: int, paint: Paint) -> Iterator[str]:
    if isinstance(part, str):
        yield paint(wrap_text(f"{QUOTED}{part}".rstrip(), width), "dim")
        return
    left, right, differs = part
    if not differs:
        left, right = f" {left}", f" {right}"
    lefts, rights = _pieces(left, column), _pieces(right, column)
    for number in range(max(len(lefts), len(rights))):
        one = lefts[number] if number < len(lefts) else ""
        other = rights[number] if number < len(rights) else ""
        padded = one + " " * (column - display_width(one))
        if differs:
            padded, other = paint(padded, "error") if one else padded, paint(other, "ok")
        yield f"{QUOTED}{padded} │ {other}".rstrip()


def _pieces(text: str, column: int) -> list[str]:
    """Return the text in pieces that fit."""
    rest, pieces = text.expandtabs(4), []
    while True:
        piece = text_format.cut_columns(rest, column) or rest[:1]
        pieces.append(piece)
        rest = rest[len(piece) :]
        if not rest:
            return pieces
