"""Splits a text into chunks of limited length. No I/O.

A text is split into paragraphs. A short paragraph is joined with a neighbour of the same type; a long one is split at
sentence ends, then at spaces. A code block stays whole if it fits. A word is never split.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import msgspec

from trunkline.workers.memory.chunks.tokens import Counter, load_counter

MIN_TOKENS = 100
MAX_TOKENS = 800
"""The maximum number of tokens of a chunk."""

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"')\]»”’]*\s+|(?<=[。！？])")
_WORD = re.compile(r"\S{1,8000}\s*")
"""A word. A sequence of more than 8 000 characters without a space is not treated as one word."""


class TextPiece(msgspec.Struct, frozen=True):
    """A part of a text, with its type and its number of tokens."""

    text: str
    type: str
    tokens: int


class TextSplitter:
    """Splits texts. ``detect`` returns the type of a piece, ``count`` its number of tokens."""

    def __init__(self, detect: Callable[[str], str], count: Counter | None = None) -> None:
        self._detect = detect
        self._count = count

    @property
    def is_ready(self) -> bool:
        """Report whether the token counter is loaded. Loading it takes a moment."""
        return self._count is not None

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        if self._count is None:
            self._count = load_counter()
        return self._count(text)

    def split(self, text: str, forced: str | None = None) -> list[TextPiece]:
        """Return the pieces of a text in order; with ``forced`` all have that type. Joined, the pieces are the text
        except for white space.
        """
        pieces = [
            self._piece(part, forced) for paragraph in _paragraphs(text) for part in self._split(paragraph)
        ]
        joined = self._joined(pieces, lambda one, other: one.type == other.type)
        if sum(piece.tokens for piece in joined) <= MAX_TOKENS:
            return joined
        return self._balanced(self._joined(joined, lambda one, other: True))

    def _piece(self, text: str, kind: str | None) -> TextPiece:
        text = text.strip()
        return TextPiece(text, self._detect(text) if kind is None else kind, self.count(text))

    # Splitting -----------------------------------------------------------------------------------------------

    def _split(self, paragraph: str) -> Iterator[str]:
        """Yield a paragraph; if it is too long, yield pieces of it that have about the same length."""
        if self.count(paragraph) <= MAX_TOKENS:
            yield paragraph
            return
        parts = [part for sentence in _pieces(paragraph, _SENTENCE) for part in self._words(sentence)]
        lengths = [self.count(part) for part in parts]
        goal = sum(lengths) / -(-sum(lengths) // MAX_TOKENS)
        held, size = "", 0
        for part, length in zip(parts, lengths, strict=True):
            if held.strip() and (size + length > MAX_TOKENS or size >= goal):
                yield held
                held, size = "", 0
            held, size = held + part, size + length
        if held.strip():
            yield held

    def _words(self, sentence: str) -> Iterable[str]:
        """Return the sentence; if it is too long, return its words."""
        return [sentence] if self.count(sentence) <= MAX_TOKENS else _WORD.findall(sentence)

    # Joining -------------------------------------------------------------------------------------------------

    def _joined(
        self, pieces: list[TextPiece], allowed: Callable[[TextPiece, TextPiece], bool]
    ) -> list[TextPiece]:
        """Join short pieces with a neighbour if both fit into one piece."""
        found: list[TextPiece] = []
        for piece in pieces:
            both = self._both(found[-1], piece) if found and allowed(found[-1], piece) else None
            if (
                both is not None
                and min(found[-1].tokens, piece.tokens) < MIN_TOKENS
                and both.tokens <= MAX_TOKENS
            ):
                found[-1] = both
            else:
                found.append(piece)
        return found

    def _balanced(self, pieces: list[TextPiece]) -> list[TextPiece]:
        """Join a piece that is still short with the piece that follows, and split both evenly, unless that piece is
        code.
        """
        found: list[TextPiece] = []
        for piece in pieces:
            short = bool(found) and found[-1].tokens < MIN_TOKENS and not _FENCE.search(piece.text)
            if not short:
                found.append(piece)
                continue
            both = self._both(found.pop(), piece)
            found += [self._piece(part, piece.type) for part in self._split(both.text)]
        return found

    def _both(self, first: TextPiece, second: TextPiece) -> TextPiece:
        longer = first if first.tokens >= second.tokens else second
        return self._piece(f"{first.text}\n\n{second.text}", longer.type)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and code blocks in order, without blank ones."""
    at = 0
    for fence in _FENCE.finditer(text):
        yield from _plain(text[at : fence.start()])
        yield fence[0].rstrip("\n")
        at = fence.end()
    yield from _plain(text[at:])


def _plain(text: str) -> Iterator[str]:
    for part in _BLANK.split(text):
        if part.strip():
            yield part.strip("\n").rstrip()


def _pieces(text: str, end: re.Pattern[str]) -> list[str]:
    """Return the text split after each match of ``end``. White space is kept, so the joined pieces are the text."""
    cuts = [0, *(found.end() for found in end.finditer(text)), len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if b > a]
