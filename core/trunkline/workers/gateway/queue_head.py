"""The first turn of a conversation's queue, and whether the turn is parked. Clients that watch queued messages poll the
queue head, so it is cached and shared among them."""

from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState

FRESH_SECONDS = 1.0
"""Seconds for which a cached answer is used."""


class QueueHead(NamedTuple):
    """The head of a queue. ``turn`` is the turn that the conversation's journal ends with, "" for none;
    ``parked`` is the state of that turn when it waits for a person, else None."""

    turn: str
    parked: TurnState | None


@dataclass(slots=True)
class _CacheEntry:
    """The head of one conversation's queue, and the time when it was read."""

    read_at: float = float("-inf")
    first: QueueHead | None = None
    order: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def is_used(self) -> bool:
        return self.order.statistics().locked


class QueueHeadCache:
    """Returns queue heads, at most FRESH_SECONDS old.

    Methods raise BusError when the bus does not answer.
    """

    def __init__(self, turns: TurnLookup) -> None:
        self._turns = turns
        self._entries: dict[str, _CacheEntry] = {}

    async def get(self, conversation: str) -> QueueHead:
        """Return the first turn of a conversation, at most FRESH_SECONDS old."""
        now = anyio.current_time()
        self._entries = {
            name: one
            for name, one in self._entries.items()
            if one.is_used or now - one.read_at < FRESH_SECONDS
        }
        entry = self._entries.setdefault(conversation, _CacheEntry())
        async with entry.order:  # concurrent callers wait for one read and share its result
            if entry.first is None or anyio.current_time() - entry.read_at >= FRESH_SECONDS:
                entry.read_at, entry.first = anyio.current_time(), None
                entry.first = await self._read_head(conversation)
            return entry.first

    async def _read_head(self, conversation: str) -> QueueHead:
        """Read the end of the journal; only for a parked turn read all of it."""
        turn, parked = await self._turns.journal_tail(conversation)
        return QueueHead(turn, await self._turns.find_in_journal(turn) if parked else None)
