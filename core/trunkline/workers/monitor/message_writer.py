"""Storing what a turn has said: asked of memory again and again, until it says that the messages are stored.

An accepted message is never given up because a disk is full. The turn stays in the journal and in the inbox, and holds
its slot here: a memory that cannot write for long leaves no more answers behind it than run at once.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio

from trunkline.contracts.conversations.messages import AppendConversation
from trunkline.contracts.gateway.subjects import STORE_MESSAGES
from trunkline.errors import TRANSIENT_CODES, ErrorCode
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault

log = logging.getLogger(__name__)

TRY_SECONDS, PAUSE, LONGEST_PAUSE = 10.0, 0.5, 5.0
"""How long one try may take, and how long to wait before the next ones."""

LATE_AFTER_SECONDS = 5.0
"""Seconds after which those who watch are told that an answer is not stored yet."""

RETRYABLE_CODES = (*TRANSIENT_CODES, ErrorCode.INTERNAL)
"""Refusals that say nothing about the messages. Any other one would be the same for ever."""

LateCallback = Callable[[], Awaitable[None]]


class MessageWriter:
    """Has the messages of turns stored, however long that takes."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._late: set[str] = set()

    @property
    def late_count(self) -> int:
        """How many answers memory has not taken for longer than people are left without a word."""
        return len(self._late)

    async def store(self, request: AppendConversation, on_late: LateCallback) -> None:
        """Return when the messages are stored; ``on_late`` is called once when that takes long.

        Asking again is harmless: each message is stored once, by its id. Raises RemoteFault if it is refused for good.
        """
        key, pause, began = request.turn or request.conversation, PAUSE, anyio.current_time()
        try:
            while (problem := await self._try_store(request)) is not None:
                if pause == PAUSE:
                    log.warning("turn %s waits to be stored: %s", key, problem)
                if key not in self._late and anyio.current_time() - began >= LATE_AFTER_SECONDS:
                    log.error("turn %s is not stored yet, and is kept until it is: %s", key, problem)
                    self._late.add(key)
                    await on_late()
                await anyio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        finally:
            self._late.discard(key)

    async def _try_store(self, request: AppendConversation) -> BusError | None:
        """Why the messages are not stored now; None when they are."""
        try:
            await self._bus.call(STORE_MESSAGES, request, timeout=TRY_SECONDS, repeatable=True)
        except RemoteFault as fault:
            if fault.code not in RETRYABLE_CODES:
                raise
            return fault
        except (CallTimeout, NoResponders) as error:
            return error
        return None
