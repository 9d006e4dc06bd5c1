"""Finds copies of a purged text in other files and messages, by its lines. No I/O."""

import re
from collections.abc import Iterable

MIN_LINE_BYTES = 12
"""The minimum length in bytes of a line by which a text is recognised. Shorter lines occur in many texts."""

MAX_SUBSTRING_LINES = 200
"""The number of lines, the longest ones, that are also searched within longer lines."""

_BREAK = re.compile(rb'(?:\\+[nrt"/]?|["\n\r\t])+')
"""The ends of lines, in a file and in a text within JSON."""

_STRUCTURAL = re.compile(rb"[a-z_]+|[a-z]+_[0-9A-Za-z]{20,}|chunk-[0-9a-f-]+|[0-9T:.+Z-]+|[0-9a-f]{12}")
"""A key, an id, a time or the digest of a mark. Such parts occur in records of any text."""


_MARKS = b" #>*+-|`.,:!0123456789"
"""The characters around a line that is listed or quoted."""


def significant_lines(data: bytes) -> frozenset[bytes]:
    """Return the lines by which a text is recognised; none if the data is not text."""
    if b"\0" in data[:8_000]:
        return frozenset()
    parts = (part.strip(b" ,:{}[]") for part in _BREAK.split(data))
    return frozenset(
        part for part in parts if len(part) >= MIN_LINE_BYTES and not _STRUCTURAL.fullmatch(part)
    )


def is_similar(one: frozenset[bytes], other: frozenset[bytes]) -> bool:
    """Report whether at least half of the smaller text is in the other text."""
    smaller = min(total_bytes(one), total_bytes(other))
    return smaller > 0 and 2 * total_bytes(one & other) >= smaller


def total_bytes(lines: Iterable[bytes]) -> int:
    """Return the number of bytes of the lines."""
    return sum(map(len, lines))


class TextMatcher:
    """Finds the lines of a text.

    Guarantees: both methods only compute.

    Not guaranteed: that every copy is found. Lines of fewer than 12 bytes are ignored, and only the 200 longest lines
    are searched for within longer ones.
    """

    def __init__(self, lines: frozenset[bytes]) -> None:
        self._lines = lines
        self._sought = sorted(lines, key=len, reverse=True)[:MAX_SUBSTRING_LINES]

    def is_most_of(self, lines: frozenset[bytes]) -> bool:
        """Report whether at least half of a text consists of this text's lines. Raises nothing."""
        return bool(lines) and 2 * total_bytes(lines & self._lines) >= total_bytes(lines)

    def count_lines(self, data: bytes) -> int:
        """Return how many of the lines are in ``data``. Raises nothing."""
        found = significant_lines(data) & self._lines
        return len(found) + sum(line not in found and line in data for line in self._sought)


def without_boilerplate(lines: frozenset[bytes], own: frozenset[bytes]) -> frozenset[bytes]:
    """Return the lines without those in ``own``, which the program writes, even if they are listed or quoted."""
    return frozenset(
        line
        for line in lines
        if strip_marks(line) not in own and strip_marks(line.partition(b": ")[2]) not in own
    )


def strip_marks(line: bytes) -> bytes:
    """Return a line without the characters around it where it is listed or quoted."""
    return line.strip(_MARKS)
