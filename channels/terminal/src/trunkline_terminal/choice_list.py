"""A list from which a person picks a line: arrow keys move, letters filter, Enter takes. Draws lines, reads no key."""

from collections.abc import Sequence

import anyio

from trunkline_terminal import text_format
from trunkline_terminal.text_match import best_matches

MOST_ROWS = 12
"""The largest number of lines that are offered at once."""


class Picker:
    """The list while it is open. ``filter`` is the text that narrows it."""

    def __init__(self, title: str, choices: Sequence[str]) -> None:
        self.title = title
        self._choices = choices
        self._found = list(range(len(choices)))
        self._at = 0
        self._closed = anyio.Event()
        self._picked: int | None = None

    def narrow(self, words: str) -> None:
        """Offer the choices that match these words; the best match is the current one."""
        found = best_matches(words, self._choices)
        if found != self._found:
            self._found, self._at = found, 0

    def move(self, rows: int) -> None:
        """Make another line the current one; the ends of the list are not crossed."""
        self._at = min(max(self._at + rows, 0), max(len(self._found) - 1, 0))

    def take(self) -> None:
        """Pick the current line. Without one the list stays open."""
        if self._found:
            self._picked = self._found[self._at]
            self._closed.set()

    def close(self) -> None:
        """Pick nothing."""
        self._closed.set()

    async def picked(self) -> int | None:
        """The position of the choice that was picked, or None, once the list is closed."""
        await self._closed.wait()
        return self._picked

    def lines(self, width: int, room: int) -> list[tuple[str, bool]]:
        """The lines to draw, each with whether it is the current one."""
        rows = max(1, min(MOST_ROWS, room - 2))
        first = min(max(self._at - rows // 2, 0), max(len(self._found) - rows, 0))
        shown = self._found[first : first + rows]
        lines = [(text_format.fit(self.title, width), False)]
        for place, number in enumerate(shown, first):
            mark = "❯ " if place == self._at else "  "
            lines.append((mark + text_format.fit(self._choices[number], width - 2), place == self._at))
        count = f"{self._at + 1} of {len(self._found)}" if self._found else "Nothing matches"
        lines.append(
            (
                text_format.fit(f"{count} · ↑ ↓ move, letters filter, Enter takes, Esc closes", width),
                False,
            )
        )
        return lines
