"""The timeout for an HTTP client that sends a request: uvicorn by itself waits for ever.

Only what is being received is timed. A request that has come whole may be answered for as long as it takes, so
streams of events are not touched.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS, BODY_SECONDS = 10.0, 60.0

_HEAD, _BODY = h11.IDLE, h11.SEND_BODY
"""What the client is sending, by the state that h11 sees it in; in any other it sends nothing that is waited for."""


class TimeoutProtocol(H11Protocol):
    """Gives a request's head and its body a time each, from first to last byte however they trickle in.

    What is late is answered with 408, where no answer has begun, and the connection is closed.
    """

    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS
    _timed: object = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection: its first head is timed from now."""
        super().connection_made(transport)
        self._restart_timer()

    def data_received(self, data: bytes) -> None:
        """Some bytes."""
        super().data_received(data)
        self._restart_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._cancel_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        """Time what the client is sending now; what is timed already goes on."""
        state = self.conn.their_state
        if state is self._timed:
            return
        self._cancel_timer()
        seconds = {_HEAD: self.head_seconds, _BODY: self.body_seconds}.get(state)
        if seconds is not None and not self.transport.is_closing():
            self._timed, self._timer = state, self.loop.call_later(seconds, self._time_out)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timed = self._timer = None

    def _time_out(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # or it would answer too
        if not self.transport.is_closing() and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [(b"connection", b"close"), (b"content-length", b"0")]
            late = h11.Response(status_code=408, reason=b"Request Timeout", headers=headers)
            self.transport.write(self.conn.send(late) or b"")
        self.transport.close()


def timeout_protocol(head: float = HEAD_SECONDS, body: float = BODY_SECONDS) -> type[TimeoutProtocol]:
    """The protocol with these times, in seconds; for ``uvicorn.Config(http=...)``."""
    return type("Patient", (TimeoutProtocol,), {"head_seconds": head, "body_seconds": body})
