"""Which turn is first in a conversation, and whether it waits for a person. Everybody who watches a message behind it
asks that again and again: what one of them finds is for all of them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState

FRESH_SECONDS = 1.0
"""Seconds for which what was found is told to those who ask after it."""


class QueueHead(NamedTuple):
    """``turn`` is the one that the conversation's journal ends with, "" for none; ``parked`` is that turn, if it waits
    for a person."""

    turn: str
    parked: TurnState | None


@dataclass(slots=True)
class _CacheEntry:
    """What was found in one conversation, and when it was looked."""

    began: float = float("-inf")
    first: QueueHead | None = None
    order: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def is_used(self) -> bool:
        return self.order.statistics().locked


class QueueHeadCache:
    """Raises BusError when the bus does not answer."""

    def __init__(self, turns: TurnLookup) -> None:
        self._turns = turns
        self._looks: dict[str, _CacheEntry] = {}

    async def get(self, conversation: str) -> QueueHead:
        """The first turn of a conversation, as it was a second ago at most."""
        now = anyio.current_time()
        self._looks = {
            name: one for name, one in self._looks.items() if one.is_used or now - one.began < FRESH_SECONDS
        }
        look = self._looks.setdefault(conversation, _CacheEntry())
        async with look.order:  # who comes while another one looks waits for what that one finds
            if look.first is None or anyio.current_time() - look.began >= FRESH_SECONDS:
                look.began, look.first = anyio.current_time(), None
                look.first = await self._read_head(conversation)
            return look.first

    async def _read_head(self, conversation: str) -> QueueHead:
        """Only of a parked turn is more read than the end of the journal."""
        turn, parked = await self._turns.journal_tail(conversation)
        return QueueHead(turn, await self._turns.find_begun(turn) if parked else None)
