"""A cache of turns that this monitor parked recently. The cache avoids a replay of the journal for each decision when a
person decides about several calls of a turn one after the other.

A cached turn is used only while the conversation's journal still ends where the turn was parked. Otherwise,
and after CACHE_SECONDS, the turn is replayed from the journal: by then the feed may have lost its beginning.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from trunkline.contracts.turns.feed_events import JournalTranslator
from trunkline.workers.monitor.approval_publisher import PublishedApprovals
from trunkline.workers.monitor.feed_writer import FeedWriter
from trunkline.workers.monitor.turn import Turn

CACHE_SECONDS, MAX_CACHED_TURNS = 120.0, 64
"""Seconds for which a turn is cached, and the number of cached turns."""


@dataclass(frozen=True, slots=True)
class ParkedTurn:
    """A parked turn. ``seq`` is where its conversation's journal ends, ``published`` the approvals that were
    published."""

    turn: Turn
    epoch: int
    seq: int
    feed: FeedWriter
    translator: JournalTranslator
    published: PublishedApprovals


class ParkedTurnCache:
    """Parked turns by id. ``drop`` is called with the feed of each turn that leaves the cache unused."""

    def __init__(self, drop: Callable[[FeedWriter], None]) -> None:
        self._drop = drop
        self._entries: OrderedDict[str, tuple[float, ParkedTurn]] = OrderedDict()

    def put(self, turn: str, parked: ParkedTurn) -> None:
        """Cache a turn, replacing its former entry."""
        _, before = self._entries.pop(turn, (0.0, None))
        if before is not None and before.feed is not parked.feed:
            self._drop(before.feed)
        self._entries[turn] = (anyio.current_time() + CACHE_SECONDS, parked)
        self._forget_old()

    def take(self, turn: str, seq: int | None) -> ParkedTurn | None:
        """Remove and return a turn, if the journal of its conversation ends at ``seq``; else None."""
        self._forget_old()
        _, parked = self._entries.pop(turn, (0.0, None))
        if parked is not None and parked.seq != seq:
            self._drop(parked.feed)
            return None
        return parked

    def _forget_old(self) -> None:
        now = anyio.current_time()
        while self._entries:
            until, parked = next(iter(self._entries.values()))
            if until > now and len(self._entries) <= MAX_CACHED_TURNS:
                return
            self._entries.popitem(last=False)
            self._drop(parked.feed)
