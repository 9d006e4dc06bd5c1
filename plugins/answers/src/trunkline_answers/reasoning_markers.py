"""Reasoning in the text of an answer: what stands between ``<think>`` and ``</think>`` at its beginning. No I/O."""

from collections.abc import Iterator

from trunkline.api.model import Reasoning, Text

TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<thought>", "</thought>"))
"""The tags that models write, each with its end."""


class ReasoningTags:
    """Separates the text of one answer, which arrives in pieces, from the reasoning at its beginning.

    Tags count only before any other text, so that an answer about tags stays as it is. Reasoning without an end is
    reasoning up to the end of the answer.
    """

    def __init__(self) -> None:
        self._held = ""
        self._end: str | None = None
        self._done = False
        self._trims = False

    def feed(self, piece: str) -> Iterator[Text | Reasoning]:
        """Yield what is certain by now."""
        self._held += piece
        if self._done:
            yield from self._text(self._taken(len(self._held)))
        elif self._end is not None:
            yield from self._reasoning(self._end)
        else:
            yield from self._begin()

    def finish(self) -> Iterator[Text | Reasoning]:
        """Yield what was held back."""
        rest = self._taken(len(self._held))
        yield from (_some(rest) if self._end is not None and not self._done else self._text(rest))

    def _begin(self) -> Iterator[Text | Reasoning]:
        text = self._held.lstrip()
        for opening, end in TAGS:
            if text.startswith(opening):
                self._end = end
                self._held = text.removeprefix(opening)
                yield from self._reasoning(end)
                return
        if text and not any(opening.startswith(text) for opening, _ in TAGS):
            self._done = True
            yield from self._text(self._taken(len(self._held)))

    def _reasoning(self, end: str) -> Iterator[Text | Reasoning]:
        before, found, after = self._held.partition(end)
        if found:
            self._done, self._trims, self._held = True, True, ""
            yield from _some(before)
            yield from self._text(after)
        else:
            yield from _some(self._taken(len(self._held) - _tail(self._held, end)))

    def _text(self, text: str) -> Iterator[Text]:
        """Yield a piece of text, without the empty lines between reasoning and text."""
        if self._trims:
            text = text.lstrip("\n")
        if text:
            self._trims = False
            yield Text(text)

    def _taken(self, size: int) -> str:
        taken, self._held = self._held[:size], self._held[size:]
        return taken


def _tail(text: str, end: str) -> int:
    """Return the number of characters at the end of the text that may be the beginning of the tag."""
    return next((size for size in range(len(end) - 1, 0, -1) if text.endswith(end[:size])), 0)


def _some(text: str) -> Iterator[Reasoning]:
    if text:
        yield Reasoning(text)
