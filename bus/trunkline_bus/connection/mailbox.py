"""A queue of raw messages for one reader, with a limit on silence. Makes no subscriptions."""

import asyncio
from collections import deque

from nats.aio.msg import Msg

from trunkline_bus.connection.nats_connection import STATUS, ConnectionLost, NatsConnection
from trunkline_bus.errors import CallTimeout, NoResponders


class Mailbox:
    """Messages that a callback ``put`` and a task ``get``. A ``fragile`` mailbox fails when the connection is lost."""

    def __init__(self, link: NatsConnection, subject: str, *, fragile: bool) -> None:
        self._subject = subject
        self._items: deque[Msg] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._lost = False
        self._undo = link.on_lost(self._break) if fragile else None

    def put(self, msg: Msg) -> None:
        """Add a message; never blocks."""
        self._items.append(msg)
        self._wake()

    def close(self) -> None:
        """Stop watching the connection."""
        if self._undo is not None:
            self._undo()

    async def get(self, timeout: float) -> Msg:
        """Return the next message. Raises ``CallTimeout`` after ``timeout`` seconds without a message,
        ``NoResponders``.

        A fragile mailbox raises ``ConnectionLost`` if the connection was lost and no message is left.
        """
        if not self._items and not self._lost:
            await self._arrival(timeout)
        if not self._items:
            raise ConnectionLost("the connection to NATS was lost")
        msg = self._items.popleft()
        if not msg.data and msg.headers is not None and msg.headers.get(STATUS) == "503":
            raise NoResponders(f"nobody listens on {self._subject}")
        return msg

    async def _arrival(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(timeout, self._expire, self._waiter, timeout)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _break(self) -> None:
        self._lost = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _expire(self, waiter: "asyncio.Future[None]", timeout: float) -> None:
        if not waiter.done():
            waiter.set_exception(CallTimeout(f"no reply from {self._subject} for {timeout:g} s"))
