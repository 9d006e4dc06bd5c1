"""Timeouts for receiving a request; uvicorn alone waits forever.

Only receiving is timed. Answering a complete request may take any time, so event streams are not affected.
"""

import asyncio

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from trunkline.errors import ErrorCode
from trunkline_bus import new_id

HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0

LEAST_RATE = 32 * 1024
"""The bytes of a body that are worth one more second, so that a large archive may come over a slow network."""

LEAST_MORE = 0.1
"""The shortest time that a body is given, in seconds: what trickles in gets none."""

LATE = msgspec.json.encode(
    {
        "code": ErrorCode.INVALID_REQUEST,
        "message": "The request did not arrive in time. Send it again, over a faster connection if it is large.",
    }
)
"""The body of the response to a late request."""

_HEAD, _BODY = h11.IDLE, h11.SEND_BODY
"""The part that the client is sending, by h11's state; in any other state the client sends nothing that is
awaited."""


class TimeoutProtocol(H11Protocol):
    """Limits the time of a request's head and body, each from the first to the last byte. A body gets more time for
    what has arrived, at ``LEAST_RATE``.

    A late request is answered with 408 if no response has begun, and the connection is closed.
    """

    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS
    _timed: object = None
    _is_upgraded = False
    _timer: asyncio.TimerHandle | None = None
    _received = 0
    """The bytes since the timer was started."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first head of a connection."""
        super().connection_made(transport)
        self._restart_timer()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes, then time the part that follows."""
        self._received += len(data)
        super().data_received(data)
        self._restart_timer()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to the protocol of WebSockets, which may stay silent for as long as it likes."""
        super().handle_websocket_upgrade(event)
        self._is_upgraded = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._cancel_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        """Time the part that the client is sending now; a running timer for the same part continues."""
        if self._is_upgraded:
            return self._cancel_timer()
        state = self.conn.their_state
        if state is self._timed:
            return
        self._cancel_timer()
        seconds = {_HEAD: self.head_seconds, _BODY: self.body_seconds}.get(state)
        if seconds is not None and not self.transport.is_closing():
            self._timed, self._received = state, 0
            self._timer = self.loop.call_later(seconds, self._time_out)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timed = self._timer = None

    def _time_out(self) -> None:
        if self._is_awaited() and (more := self._received / LEAST_RATE) >= LEAST_MORE:
            self._received = 0
            self._timer = self.loop.call_later(more, self._time_out)
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # otherwise the handler would respond too
        if not self.transport.is_closing() and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [
                (b"connection", b"close"),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(LATE)).encode()),
                (b"x-correlation-id", new_id("req").encode()),
            ]
            late = h11.Response(status_code=408, reason=b"Request Timeout", headers=headers)
            self.transport.write((self.conn.send(late) or b"") + (self.conn.send(h11.Data(LATE)) or b""))
        self.transport.close()

    def _is_awaited(self) -> bool:
        """Report whether a body arrives for which somebody still waits. Nobody does behind a response."""
        return self._timed is _BODY and self.cycle is not None and not self.cycle.response_complete


def timeout_protocol(head: float = HEAD_SECONDS, body: float = BODY_SECONDS) -> type[TimeoutProtocol]:
    """Return the protocol with these times, in seconds, for ``uvicorn.Config(http=...)``."""
    return type("Patient", (TimeoutProtocol,), {"head_seconds": head, "body_seconds": body})
