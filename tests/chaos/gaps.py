"""How long people who were just being answered saw nothing, by fault. No I/O in here."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from .faults import Kind
from .transcript import Transcript

REACH = 5.0
"""Seconds after a fault within which a silence may begin that counts as its own."""

Struck = tuple[float, str, Kind]


def gaps(struck: Sequence[Struck], seen: Iterable[Transcript]) -> dict[tuple[str, Kind], list[float]]:
    """For each victim and kind: the longest silence in each stream that was in the middle of its text at a fault.

    Streams that the fault did not touch count too, with the pause between two words.
    """
    found: dict[tuple[str, Kind], list[float]] = {}
    silences = [list(_silences(one)) for one in seen]
    for at, victim, kind in struck:
        for stream in silences:
            if stream and stream[0][0] < at < stream[-1][1]:
                lengths = [end - begin for begin, end in stream if end > at and begin < at + REACH]
                if lengths:
                    found.setdefault((victim, kind), []).append(max(lengths))
    return found


def worst(seen: Iterable[tuple[str, Transcript]], least: float) -> list[tuple[float, float, str]]:
    """Silences of at least so many seconds: when each began, how long it was, and whose it was."""
    found = [
        (begin, end - begin, name)
        for name, one in seen
        for begin, end in _silences(one)
        if end - begin >= least
    ]
    return sorted(found)


def _silences(seen: Transcript) -> Iterator[tuple[float, float]]:
    """From each piece of text to the next of the same step: between steps tools run, which is no gap."""
    for (step, begin), (following, end) in pairwise(seen.moments):
        if step == following:
            yield begin, end
