"""How many messages of one conversation may be in the inbox. Who sends more is refused at once, so that what waits can
be held in memory, looked through and answered in a time that people wait.

The server counts by subject, so a look costs the same for one message and for many. Who comes at the same moment shares
a look, and what is on its way in counts as if it were there: thousands do not all find the same place.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from trunkline.errors import ErrorCode
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import Refusal

FRESH_SECONDS = 1.0
"""Seconds for which is known how many places a conversation has, and which messages wait in a full one."""

FULL_SECONDS = 0.1
"""Seconds for which a conversation without a place is not looked at again."""


class QueueFull(Refusal):
    """A conversation has as many messages in the inbox as it may have. ``reason`` says so, and what to do."""

    def __init__(self, limit: int) -> None:
        self.reason = (
            f"{limit} messages of this conversation wait for their answers, and gateway.max_queued allows no more. "
            "Send it again when some are answered; to make room sooner, cancel the turn that runs."
        )
        super().__init__(ErrorCode.RATE_LIMITED, f"The message was not accepted: {self.reason}")


@dataclass(slots=True)
class _QueueState:
    """One conversation, while anybody sends into it. ``looked`` is when its places were counted, ``full`` when none was
    found, ``coming`` how many are on their way in."""

    places: int = 0
    senders: int = 0
    coming: int = 0
    looked: float = float("-inf")
    full: float = float("-inf")
    order: anyio.Lock = field(default_factory=anyio.Lock)


class QueueLimiter:
    """Places in the conversations' queues. ``limit`` is how many each has, the running turn's included."""

    def __init__(self, turns: TurnLookup, limit: int) -> None:
        self._turns = turns
        self._limit = limit
        self._lines: dict[str, _QueueState] = {}
        self._known: dict[str, tuple[float, frozenset[str]]] = {}
        """Of full conversations: when it was looked, and which turns were there."""

    @asynccontextmanager
    async def reserve(self, conversation: str) -> AsyncIterator[None]:
        """A place for a message on its way in. Raises QueueFull, and BusError when the bus does not answer."""
        line = self._lines.setdefault(conversation, _QueueState())
        line.senders += 1
        try:
            await self._take(line, conversation)
            try:
                yield
            finally:
                line.coming -= 1
                self._known.pop(conversation, None)  # one more message may wait there now
        finally:
            line.senders -= 1
            if not line.senders:
                del self._lines[conversation]

    async def _take(self, line: _QueueState, conversation: str) -> None:
        async with line.order:
            if anyio.current_time() - line.full < FULL_SECONDS:
                raise QueueFull(self._limit)
            if line.places < 1 or anyio.current_time() - line.looked > FRESH_SECONDS:
                coming = line.coming
                line.places = self._limit - await self._turns.count_queued(conversation) - coming
                line.looked = anyio.current_time()
            if line.places < 1:
                line.full = anyio.current_time()
                raise QueueFull(self._limit)
            line.places -= 1
            line.coming += 1

    async def has_turn(self, conversation: str, turn: str) -> bool:
        """Report whether a message of a full conversation is one that waits there: its sender did not hear of it."""
        now = anyio.current_time()
        self._known = {name: known for name, known in self._known.items() if now - known[0] < FRESH_SECONDS}
        if conversation not in self._known:
            self._known[conversation] = (now, frozenset(await self._turns.queued_turns(conversation)))
        return turn in self._known[conversation][1]
