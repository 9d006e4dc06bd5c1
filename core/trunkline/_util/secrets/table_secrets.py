"""Finds secrets in tables: in the cell after a name (``| password | x |``), or below a name in the table's head."""

import re
from collections.abc import Iterator, Sequence

from trunkline._util.secrets.assignment_patterns import Span
from trunkline._util.secrets.named_secrets import NamedSecretFinder, is_ambiguous_name
from trunkline._util.secrets.value_rules import is_random, is_status_word

_RULE = re.compile(r"(?=[ \t|:+]*-)[-+|: \t]+")
"""The line between the head of a table and its rows."""

_DRESS = " \t\r*_`\"'"
"""The characters around the text of a cell."""

_NO_SECRET = frozenset(" \t([")
"""Characters that occur in sentences and types."""


class TableSecretFinder:
    """Finds secrets in tables of Markdown and of database shells, by the names that ``named`` knows."""

    def __init__(self, named: NamedSecretFinder) -> None:
        self._named = named

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the positions of the secrets in order."""
        if "|" not in text or self._named.name.search(text) is None:
            return
        lines, at = text.split("\n"), 0
        heads: Sequence[str] = ()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if _RULE.fullmatch(line):
                pass
            elif "|" in line and _RULE.fullmatch(following):
                heads = [head for head, _ in _cells(line)]
            elif "|" in line:
                yield from ((at + start, at + end) for start, end in self._row(line, heads))
            else:
                heads = ()
            at += len(line) + 1

    def _row(self, line: str, heads: Sequence[str]) -> Iterator[Span]:
        """Yield the secrets of a row. ``heads`` are the heads of its columns. A row without outer bars and without
        heads may be other text (``echo | sort``), so only values that look random are secrets there.
        """
        left, bars = "", line.lstrip().startswith("|")
        for column, (value, span) in enumerate(_cells(line)):
            head = heads[column] if column < len(heads) else ""
            name = next((one for one in (head, left) if self._named.name.fullmatch(one)), None)
            if name and self._is_secret(name, value) and (bars or heads or is_random(value)):
                yield span
            left = value

    def _is_secret(self, name: str, value: str) -> bool:
        if _NO_SECRET.intersection(value) or is_status_word(value) or not self._named.could_be(value):
            return False
        return is_random(value) or not is_ambiguous_name(name)


def _cells(line: str) -> list[tuple[str, Span]]:
    """Return the cells of a row, each as its text and position."""
    body = line.strip().removeprefix("|")
    at, found = line.index(body), []
    for cell in body.removesuffix("|").split("|"):
        text = cell.strip(_DRESS)
        start = at + cell.index(text)
        found.append((text, (start, start + len(text))))
        at += len(cell) + 1
    return found
