"""The common lines of two texts. Bytes only; knows no history.

Lines end in a line feed, as in git, and git's own code computes the differences.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pygit2
from pygit2.enums import DiffOption


class MatchingLines(NamedTuple):
    """Lines that stand in both texts: where they begin in the old and in the new (from 0), and how many."""

    old: int
    new: int
    length: int


class Hunk(NamedTuple):
    """Lines ``start`` to ``end`` (from 0, end not included) of the base are replaced by ``lines``."""

    start: int
    end: int
    lines: list[bytes]


def split_lines(data: bytes) -> list[bytes]:
    """The lines, each with its line feed; the last may have none."""
    found = data.split(b"\n")
    last = found.pop()
    return [line + b"\n" for line in found] + ([last] if last else [])


def count_lines(data: bytes) -> int:
    """Return the number of lines."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def matching_lines(old: bytes, new: bytes) -> Iterator[MatchingLines]:
    """The lines that stand in both texts, in order."""
    if new.startswith(old) and old.endswith(b"\n"):  # a file that grew: there is nothing to compare
        yield MatchingLines(0, 0, count_lines(old))
        return
    at_old = at_new = 0
    for _, end, first, last in _changes(old, new):
        if first > at_new:
            yield MatchingLines(at_old, at_new, first - at_new)
        at_old, at_new = end, last
    left = count_lines(new) - at_new
    if left:
        yield MatchingLines(at_old, at_new, left)


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """``ours`` with what ``theirs`` changed of ``base``; None where both changed the same or neighbouring lines."""
    changes = sorted([*_hunks(base, ours), *_hunks(base, theirs)], key=lambda hunk: (hunk.start, hunk.end))
    lines, result, at = split_lines(base), list[bytes](), 0
    previous: Hunk | None = None
    for hunk in changes:
        if hunk == previous:
            continue  # both made the same change
        if previous is not None and hunk.start <= previous.end:
            return None
        result += [*lines[at : hunk.start], *hunk.lines]
        at, previous = hunk.end, hunk
    return b"".join([*result, *lines[at:]])


def _hunks(base: bytes, text: bytes) -> Iterator[Hunk]:
    lines = split_lines(text)
    for start, end, first, last in _changes(base, text):
        yield Hunk(start, end, lines[first:last])


def _changes(old: bytes, new: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield for each change the range of lines of the old text (start, end) and of the new one (start,
    end)."""
    patch = pygit2.Patch.create_from(old, new, flag=DiffOption.FORCE_TEXT, context_lines=0)
    for hunk in patch.hunks:
        start = hunk.old_start - (hunk.old_lines > 0)  # of nothing git names the line before
        first = hunk.new_start - (hunk.new_lines > 0)
        yield start, start + hunk.old_lines, first, first + hunk.new_lines
