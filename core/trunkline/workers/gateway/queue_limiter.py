"""A limit on the messages of one conversation in the inbox. Further messages are refused at once, so that the
queue fits into main memory and is answered in reasonable time.

The server counts messages by subject, so a count costs the same for any number of messages. Concurrent
senders share one count, and messages that are being sent count as stored: the limit is not exceeded when
thousands arrive together.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from trunkline.errors import ErrorCode
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline_bus import Refusal

FRESH_SECONDS = 1.0
"""Seconds for which the count of a conversation, and the turns in a full one, are cached."""

FULL_SECONDS = 0.1
"""Seconds for which a full conversation is not counted again."""


class QueueFull(Refusal):
    """A conversation has as many messages in the inbox as allowed. ``reason`` states the limit and what to
    do."""

    def __init__(self, limit: int) -> None:
        self.reason = (
            f"{limit} messages of this conversation wait for their answers, and gateway.max_queued allows no more. "
            "Send it again when some are answered; to make room sooner, cancel the turn that runs."
        )
        super().__init__(ErrorCode.RATE_LIMITED, f"The message was not accepted: {self.reason}")


@dataclass(slots=True)
class _QueueState:
    """The state of one conversation while a message is being sent to it.

    ``counted_at`` is the time of the last count, ``full_at`` the time when no place was free, ``in_flight`` the
    number of messages that are being sent.
    """

    places: int = 0
    senders: int = 0
    in_flight: int = 0
    counted_at: float = float("-inf")
    full_at: float = float("-inf")
    order: anyio.Lock = field(default_factory=anyio.Lock)


class QueueLimiter:
    """Reserves places in the queues of conversations. ``limit`` is the number of places of each, including
    that of the running turn."""

    def __init__(self, turns: TurnLookup, limit: int) -> None:
        self._turns = turns
        self._limit = limit
        self._queues: dict[str, _QueueState] = {}
        self._queued_turns: dict[str, tuple[float, frozenset[str]]] = {}
        """For full conversations: the time of the reading, and the turns that were queued then."""

    @asynccontextmanager
    async def reserve(self, conversation: str) -> AsyncIterator[None]:
        """Reserve a place for a message that is being sent.

        Raises QueueFull, and BusError when the bus does not answer.
        """
        queue = self._queues.setdefault(conversation, _QueueState())
        queue.senders += 1
        try:
            await self._take(queue, conversation)
            try:
                yield
            finally:
                queue.in_flight -= 1
                self._queued_turns.pop(conversation, None)  # the queue may have one more message now
        finally:
            queue.senders -= 1
            if not queue.senders:
                del self._queues[conversation]

    async def _take(self, queue: _QueueState, conversation: str) -> None:
        async with queue.order:
            if anyio.current_time() - queue.full_at < FULL_SECONDS:
                raise QueueFull(self._limit)
            if queue.places < 1 or anyio.current_time() - queue.counted_at > FRESH_SECONDS:
                in_flight = queue.in_flight
                queue.places = self._limit - await self._turns.count_queued(conversation) - in_flight
                queue.counted_at = anyio.current_time()
            if queue.places < 1:
                queue.full_at = anyio.current_time()
                raise QueueFull(self._limit)
            queue.places -= 1
            queue.in_flight += 1

    async def has_turn(self, conversation: str, turn: str) -> bool:
        """Report whether a message of a full conversation is queued already: its sender missed the
        acknowledgement."""
        now = anyio.current_time()
        self._queued_turns = {
            name: known for name, known in self._queued_turns.items() if now - known[0] < FRESH_SECONDS
        }
        if conversation not in self._queued_turns:
            self._queued_turns[conversation] = (now, frozenset(await self._turns.queued_turns(conversation)))
        return turn in self._queued_turns[conversation][1]
