"""uvicorn's protocol of a WebSocket, without what an open socket does not need, and with quiet refusals.

A gateway has thousands of sockets that are idle for hours. Of uvicorn's state for each, the request and the response of
the handshake and the queues of tasks that never wait take a third.
"""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

NOT_UTF8 = 1007
"""The code with which a socket is closed after a text that is not UTF-8 (RFC 6455)."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """The protocol of one connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queue = ReceivedEvents()  # type: ignore[assignment]

    async def send(self, message: Any) -> None:
        """Send a message of the application. A handshake that was refused with a response is complete: uvicorn logs an
        error for each otherwise, and anybody who reaches the port could fill the log.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def send_receive_event_to_app(self) -> None:
        """Pass a message on. A text that is not UTF-8 closes the socket. uvicorn logs a traceback for each, with which
        any client could fill the log.
        """
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.send_close(NOT_UTF8)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def start_keepalive(self) -> None:
        """Drop the handshake, whose response was just sent, and begin to ping."""
        self.request.headers.clear()  # the parser keeps the request itself
        del self.request, self.response
        super().start_keepalive()


class ReceivedEvents:
    """The messages that the application has not read yet: what uvicorn uses of ``asyncio.Queue``, with one reader and
    without a limit.
    """

    __slots__ = ("_events", "_some")

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._some: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """Report whether everything was read."""
        return not self._events

    def put_nowait(self, event: Any) -> None:
        """Add an event."""
        self._events.append(event)
        if self._some is not None and not self._some.done():
            self._some.set_result(None)

    async def get(self) -> Any:
        """Return the next event, once there is one."""
        while not self._events:
            self._some = asyncio.get_running_loop().create_future()
            try:
                await self._some
            finally:
                self._some = None
        return self._events.pop(0)
