"""Cuts growing text into pieces whose boundaries follow from the text alone. Pure.

A turn's text reaches readers in pieces of any size: live, again after a takeover, or whole from the journal. The events
of a response are numbered, so its pieces must not depend on that.
"""

import re

LONGEST = 24
"""The largest number of characters of white space, and of other characters, in a piece."""

_PIECE = re.compile(rf"\s{{{LONGEST}}}|\s{{0,{LONGEST - 1}}}\S{{1,{LONGEST}}}")


def complete_pieces(text: str) -> list[str]:
    """Return the pieces at the beginning of ``text`` that later text cannot change. A piece is a word with the white
    space before it, or a part of a long word."""
    pieces, at = [], 0
    while (found := _PIECE.match(text, at)) and _is_complete(found, text):
        pieces.append(found.group())
        at = found.end()
    return pieces


def _is_complete(found: re.Match[str], text: str) -> bool:
    piece = found.group()
    return found.end() < len(text) or len(piece.lstrip()) in (0, LONGEST)
