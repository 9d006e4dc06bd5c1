"""The delays that people saw during an answer, by fault. No I/O in here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .faults import InjectedFault
from .feed_listener import Silence
from .transcript import Transcript

REACH = 5.0
"""Seconds after a fault within which a silence may begin that counts as its own."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The longest delay in a stream around a fault.

    ``alone``: every process was up when it struck, and no other fault happened during the delay.
    """

    struck: InjectedFault
    seconds: float
    alone: bool


def gaps(struck: Sequence[InjectedFault], streams: Iterable[Sequence[Silence]]) -> list[Gap]:
    """A gap for each fault and each stream, also for those that the fault did not touch."""
    return [
        Gap(one, end - begin, one.alone and not _disturbed(one, end, struck))
        for stream in streams
        for one in struck
        if (found := _longest(one, stream)) is not None
        for begin, end in [found]
    ]


def longest(found: Iterable[Gap]) -> list[Gap]:
    """For each fault the gap of the stream that it held up longest."""
    most: dict[InjectedFault, Gap] = {}
    for gap in found:
        if gap.struck not in most or gap.seconds > most[gap.struck].seconds:
            most[gap.struck] = gap
    return list(most.values())


def _longest(struck: InjectedFault, stream: Sequence[Silence]) -> Silence | None:
    if not stream or not stream[0][0] < struck.at < stream[-1][1]:
        return None
    near = [(begin, end) for begin, end in stream if end > struck.at and begin < struck.at + REACH]
    return max(near, key=lambda silence: silence[1] - silence[0], default=None)


def _disturbed(one: InjectedFault, end: float, struck: Sequence[InjectedFault]) -> bool:
    return any(one.at < other.at < end for other in struck if other is not one)


def worst(streams: Mapping[str, Sequence[Silence]], least: float) -> list[tuple[float, float, str]]:
    """Silences of at least so many seconds: when each began, how long it was, and whose it was."""
    found = [
        (begin, end - begin, name)
        for name, stream in streams.items()
        for begin, end in stream
        if end - begin >= least
    ]
    return sorted(found)


def shown(seen: Transcript) -> list[Silence]:
    """Return the delays that a reader of the feed saw: from each text to the next of the same step. Between steps
    tools run."""
    return [(begin, end) for (step, begin), (following, end) in pairwise(seen.moments) if step == following]
