"""Storing the messages of turns: the request to memory is repeated until memory confirms that they are
stored.

An accepted message is never dropped because a disk is full. The turn stays in the journal and in the inbox
and keeps its slot, so while memory cannot write, at most as many answers are pending as turns may run at
once.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio

from trunkline.contracts.conversations.messages import AppendConversation
from trunkline.contracts.gateway.subjects import STORE_MESSAGES
from trunkline.errors import TRANSIENT_CODES, ErrorCode
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

TRY_SECONDS, PAUSE, LONGEST_PAUSE = 10.0, 0.5, 5.0
"""Seconds that one attempt may take, and the first and longest pause between attempts."""

LATE_AFTER_SECONDS = 5.0
"""Seconds after which clients get a notice that the answer is not stored yet."""

RETRYABLE_CODES = (*TRANSIENT_CODES, ErrorCode.INTERNAL)
"""Refusals after which the request is repeated. Any other refusal is permanent."""

LateCallback = Callable[[], Awaitable[None]]


class MessageWriter:
    """Stores the messages of turns. Repeats a request without limit until memory confirms or refuses permanently."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._late: set[str] = set()

    @property
    def late_count(self) -> int:
        """The number of answers that have not been stored for LATE_AFTER_SECONDS."""
        return len(self._late)

    async def store(self, request: AppendConversation, on_late: LateCallback) -> None:
        """Return when the messages are stored; call ``on_late`` once if that takes LATE_AFTER_SECONDS.

        A repeated request is harmless: each message is stored once, by its id. Raises RemoteFault for a
        permanent refusal.
        """
        key, started_at = request.turn or request.conversation, anyio.current_time()
        backoff = Backoff(PAUSE, LONGEST_PAUSE)
        try:
            while (problem := await self._try_store(request)) is not None:
                if backoff.delay == PAUSE:
                    log.warning("turn %s waits to be stored: %s", key, problem)
                if key not in self._late and anyio.current_time() - started_at >= LATE_AFTER_SECONDS:
                    log.error(
                        "turn %s is not stored yet; storing is tried until it succeeds: %s", key, problem
                    )
                    self._late.add(key)
                    await on_late()
                await backoff.sleep()
        finally:
            self._late.discard(key)

    async def _try_store(self, request: AppendConversation) -> BusError | None:
        """Try once to store. Return the problem, or None when the messages are stored."""
        try:
            await self._bus.call(STORE_MESSAGES, request, timeout=TRY_SECONDS, repeatable=True)
        except RemoteFault as fault:
            if fault.code not in RETRYABLE_CODES:
                raise
            return fault
        except (CallTimeout, NoResponders) as error:
            return error
        return None
