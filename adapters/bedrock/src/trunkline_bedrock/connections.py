"""Closes the connection of a request that another thread is waiting on.

botocore blocks its thread, and before the head of a response arrives there is no object of its API to close. So the
connections of a client's pool report the socket that they use, and closing the exchange shuts that socket down: the
blocked thread ends and the server sees the connection close.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class HttpExchange:
    """The request that one thread makes. ``close`` may be called in any thread, at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self._socket: socket.socket | None = None
        self._closed = False

    def hold(self, connection: Any) -> None:
        """Note the connection in use, in the thread of the request. Raise ConnectionAbortedError if it is closed."""
        with self._lock:
            self._connection, self._socket = connection, connection.sock
            if self._closed:
                self._shut()
                raise ConnectionAbortedError("the call was cancelled")

    def release(self, connection: Any = None) -> None:
        """Forget the connection, which another request may use from now on."""
        with self._lock:
            if connection is None or connection is self._connection:
                self._connection = self._socket = None

    def close(self) -> None:
        """Shut the connection down, and every connection that the request opens after this."""
        with self._lock:
            self._closed = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                # Below TLS: shutting down the TLS layer would wait for the thread that reads from it.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class ExchangeTracker:
    """Connects the exchanges of threads with the connections of botocore's clients."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextmanager
    def carry(self, exchange: HttpExchange) -> Iterator[None]:
        """Note the connections that this thread uses within the context in ``exchange``."""
        self._local.exchange = exchange
        try:
            yield
        finally:
            self._local.exchange = None
            exchange.release()

    def track(self, client: Any) -> None:
        """Let the connections of a client report to this tracker. Call it before the client's first request."""
        session = client._endpoint.http_session  # botocore has no public name for it
        tracked = {
            scheme: _tracked_pool(pool, self) for scheme, pool in session._pool_classes_by_scheme.items()
        }
        session._pool_classes_by_scheme = session._manager.pool_classes_by_scheme = tracked

    def report(self, connection: Any) -> None:
        """Give the connection to the exchange of this thread, and take it from the one before."""
        exchange: HttpExchange | None = getattr(self._local, "exchange", None)
        before: HttpExchange | None = getattr(connection, "trunkline_exchange", None)
        if before is not None and before is not exchange:
            before.release(connection)
        connection.trunkline_exchange = exchange
        if exchange is not None:
            exchange.hold(connection)


def _tracked_pool(pool: Any, tracker: ExchangeTracker) -> type:
    """Return the pool's class with connections that report to the tracker."""
    plain = pool.ConnectionCls

    def connect(connection: Any) -> None:
        plain.connect(connection)
        tracker.report(connection)

    def request(connection: Any, *arguments: Any, **options: Any) -> None:
        tracker.report(connection)
        plain.request(connection, *arguments, **options)

    tracked = type(f"Tracked{plain.__name__}", (plain,), {"connect": connect, "request": request})
    return type(f"Tracked{pool.__name__}", (pool,), {"ConnectionCls": tracked})
