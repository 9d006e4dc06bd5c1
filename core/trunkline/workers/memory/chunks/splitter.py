"""Cutting a text into chunks of bounded length. Pure text work.

Paragraphs; short ones joined to their neighbour of the same type; long ones split at sentence ends, then at spaces. A
block of code stays whole while it fits, and one word is never cut.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import msgspec

from trunkline.workers.memory.chunks.tokens import Counter, load_counter

MIN_TOKENS = 100
MAX_TOKENS = 800
"""Tokens of a chunk."""

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?(?:^\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"')\]»”’]*\s+|(?<=[。！？])")
_WORD = re.compile(r"\S{1,8000}\s*")
"""One word is never cut; 8 000 letters without a space are no word any more."""


class TextPiece(msgspec.Struct, frozen=True):
    """A part of the text with its type and its length in tokens."""

    text: str
    type: str
    tokens: int


class TextSplitter:
    """Cuts texts. ``detect`` gives the type of a piece, ``count`` its tokens."""

    def __init__(self, detect: Callable[[str], str], count: Counter | None = None) -> None:
        self._detect = detect
        self._count = count

    @property
    def is_ready(self) -> bool:
        """Report whether what counts tokens is loaded, which takes a moment."""
        return self._count is not None

    def count(self, text: str) -> int:
        """The tokens of a text."""
        if self._count is None:
            self._count = load_counter()
        return self._count(text)

    def split(self, text: str, forced: str | None = None) -> list[TextPiece]:
        """The pieces in order; with ``forced`` all of that type. Joined they are the text, but for white space."""
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
        """A paragraph that is too long, in pieces of about the same length."""
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
        """A sentence that is too long falls into its words."""
        return [sentence] if self.count(sentence) <= MAX_TOKENS else _WORD.findall(sentence)

    # Joining -------------------------------------------------------------------------------------------------

    def _joined(
        self, pieces: list[TextPiece], allowed: Callable[[TextPiece, TextPiece], bool]
    ) -> list[TextPiece]:
        """Short pieces go to a neighbour while both fit into one."""
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
        """A piece that is still short shares with the long one that follows, unless that is code."""
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
    """Paragraphs and blocks of code, in order, without those that are blank."""
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
    """The text cut behind each end, white space kept, so that the pieces joined are the text."""
    cuts = [0, *(found.end() for found in end.finditer(text)), len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if b > a]
