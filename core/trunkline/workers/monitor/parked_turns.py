"""Parked turns that this monitor put down a moment ago, as they stand: who decides about several calls of a turn, one
after the other, does not have all of its journal replayed and told again each time.

A turn is picked up so only while the conversation's journal still ends where it was put down. Everything else, and what
was put down long ago, comes from the journal: by then the feed may have lost the beginning of what it told.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from trunkline.contracts.turns.feed_events import JournalTranslator
from trunkline.workers.monitor.approval_publisher import PublishedApprovals
from trunkline.workers.monitor.feed_writer import FeedWriter
from trunkline.workers.monitor.turn import Turn

SECONDS, TURNS = 120.0, 64
"""For how long a turn is kept, and how many are."""


@dataclass(frozen=True, slots=True)
class ParkedTurn:
    """A turn that was put down. ``seq`` is where its conversation's journal ends, ``published`` what was told of its
    questions."""

    turn: Turn
    epoch: int
    seq: int
    feed: FeedWriter
    translator: JournalTranslator
    published: PublishedApprovals


class ParkedTurnCache:
    """By turn. ``drop`` is told of the feed of each that is kept no longer."""

    def __init__(self, drop: Callable[[FeedWriter], None]) -> None:
        self._drop = drop
        self._kept: OrderedDict[str, tuple[float, ParkedTurn]] = OrderedDict()

    def put(self, turn: str, parked: ParkedTurn) -> None:
        """Keep a turn, in the place of what was kept of it."""
        _, before = self._kept.pop(turn, (0.0, None))
        if before is not None and before.feed is not parked.feed:
            self._drop(before.feed)
        self._kept[turn] = (anyio.current_time() + SECONDS, parked)
        self._forget_old()

    def take(self, turn: str, seq: int | None) -> ParkedTurn | None:
        """Take a turn out, if the journal of its conversation ends at ``seq``, where it was put down."""
        self._forget_old()
        _, parked = self._kept.pop(turn, (0.0, None))
        if parked is not None and parked.seq != seq:
            self._drop(parked.feed)
            return None
        return parked

    def _forget_old(self) -> None:
        now = anyio.current_time()
        while self._kept:
            until, parked = next(iter(self._kept.values()))
            if until > now and len(self._kept) <= TURNS:
                return
            self._kept.popitem(last=False)
            self._drop(parked.feed)
