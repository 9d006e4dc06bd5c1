"""Recognising a text that is purged in other files and messages: by its lines. Pure."""

import re
from collections.abc import Iterable

MIN_LINE_BYTES = 12
"""Letters (bytes) of a line by which a text is recognised; shorter ones stand anywhere."""

MAX_SUBSTRING_LINES = 200
"""Lines, the longest ones, that are looked for within longer lines too."""

_BREAK = re.compile(rb'(?:\\+[nrt"/]?|["\n\r\t])+')
"""Where lines end, in a file as in a text that lies in JSON."""

_STRUCTURAL = re.compile(rb"[a-z_]+|[a-z]+_[0-9A-Za-z]{20,}|chunk-[0-9a-f-]+|[0-9T:.+Z-]+|[0-9a-f]{12}")
"""A key, an id, a time or the digest of a mark: in a record of anything."""


_MARKS = b" #>*+-|`.,:!0123456789"
"""What stands around a line where it is listed or quoted."""


def significant_lines(data: bytes) -> frozenset[bytes]:
    """The lines by which a text is recognised; none of what is no text."""
    if b"\0" in data[:8_000]:
        return frozenset()
    parts = (part.strip(b" ,:{}[]") for part in _BREAK.split(data))
    return frozenset(
        part for part in parts if len(part) >= MIN_LINE_BYTES and not _STRUCTURAL.fullmatch(part)
    )


def is_similar(one: frozenset[bytes], other: frozenset[bytes]) -> bool:
    """Report whether at least half of the smaller text stands in the other."""
    smaller = min(total_bytes(one), total_bytes(other))
    return smaller > 0 and 2 * total_bytes(one & other) >= smaller


def total_bytes(lines: Iterable[bytes]) -> int:
    """Return the number of bytes of the lines."""
    return sum(map(len, lines))


class TextMatcher:
    """The lines of a text that is looked for."""

    def __init__(self, lines: frozenset[bytes]) -> None:
        self._lines = lines
        self._sought = sorted(lines, key=len, reverse=True)[:MAX_SUBSTRING_LINES]

    def is_most_of(self, lines: frozenset[bytes]) -> bool:
        """Report whether at least half of a text is this one."""
        return bool(lines) and 2 * total_bytes(lines & self._lines) >= total_bytes(lines)

    def count_lines(self, data: bytes) -> int:
        """Return the number of the lines that stand in ``data``."""
        found = significant_lines(data) & self._lines
        return len(found) + sum(line not in found and line in data for line in self._sought)


def without_boilerplate(lines: frozenset[bytes], own: frozenset[bytes]) -> frozenset[bytes]:
    """The lines that are somebody's, without those that are the program's own, listed or quoted."""
    return frozenset(
        line
        for line in lines
        if strip_marks(line) not in own and strip_marks(line.partition(b": ")[2]) not in own
    )


def strip_marks(line: bytes) -> bytes:
    """Return a line without what stands around it where it is listed or quoted."""
    return line.strip(_MARKS)
