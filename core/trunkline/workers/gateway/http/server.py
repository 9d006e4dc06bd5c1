"""Runs uvicorn inside the worker's task group: socket, start and end. Defines no routes."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from anyio.abc import TaskStatus
from starlette.types import ASGIApp

from trunkline.errors import TrunklineError
from trunkline.runtime.http.server_certificate import ServerCertificate
from trunkline.runtime.http.timeouts import TimeoutProtocol

GRACE_SECONDS = 3
"""Seconds that running requests may take when the server stops. Streams end at once."""

BACKLOG = 2048

KEEP_SECONDS = 75
"""Seconds that an idle connection is kept. Clients and proxies usually keep theirs for 60 s. The server keeps
it longer, so that no client sends a request on a connection that the server is closing."""


STRICT = "max-age=31536000"
"""For a year browsers connect with TLS only."""


class HttpServer:
    """An HTTP server. The constructor binds the port; ``serve`` serves requests. ``ended`` is set when the server has
    stopped for any reason.

    ``protocol`` limits the time for receiving a request, ``max_message`` the size of a message over a WebSocket, in
    bytes. ``ping_interval`` is the number of seconds between two pings over a WebSocket, and for which it may leave one
    without an answer. With ``tls`` the server speaks nothing but TLS.

    Raises:
      TrunklineError: the port is in use, or the address does not belong to this host.
    """

    def __init__(
        self,
        app: ASGIApp,
        closing: anyio.Event,
        host: str,
        port: int,
        protocol: type[TimeoutProtocol],
        *,
        max_message: int,
        ping_interval: float,
        tls: ServerCertificate | None = None,
    ) -> None:
        self._socket = _listening_socket(host, port)
        self._closing = closing
        self.address = _address(self._socket, "http" if tls is None else "https")
        self.ended = anyio.Event()
        config = uvicorn.Config(
            app,
            http=protocol,
            loop="none",
            lifespan="off",
            ws=_websocket_protocol,  # type: ignore[arg-type]  # uvicorn only calls it
            ws_max_size=max_message,
            ws_ping_interval=ping_interval,
            ws_ping_timeout=ping_interval,
            ws_per_message_deflate=False,  # a few kilobytes would become megabytes before anything limits them
            log_config=None,
            log_level="warning",  # the worker logs start and end
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls.context,
            headers=_headers(tls),
        )
        self._uvicorn = _UvicornServer(config)

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until ``drain()`` or cancelled."""
        self._uvicorn.task_status = task_status
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            self.ended.set()
            with anyio.CancelScope(shield=True):
                await self._stop()

    async def drain(self) -> None:
        """Accept no more connections, end the streams, let running requests finish, and return when all have
        ended."""
        self._closing.set()
        self._uvicorn.should_exit = True
        await self.ended.wait()

    def release(self) -> None:
        """Close the socket; safe to call at any time."""
        self._socket.close()

    async def _stop(self) -> None:
        """After a cancellation, shut uvicorn down without waiting for requests."""
        self._closing.set()
        if self._uvicorn.started and not self._uvicorn.stopped:
            self._uvicorn.force_exit = True
            await self._uvicorn.shutdown([self._socket])
        for task in tuple(self._uvicorn.server_state.tasks):
            task.cancel()


class _UvicornServer(uvicorn.Server):
    """uvicorn without its signal handlers; it reports when it has started and stopped."""

    stopped = False
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.task_status.started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self.stopped = True


def _websocket_protocol(**arguments: Any) -> asyncio.Protocol:
    """Return the protocol of a connection that becomes a WebSocket. By its name, uvicorn would import it at each
    start.
    """
    from trunkline.runtime.http.socket_protocol import SocketProtocol

    return SocketProtocol(**arguments)


def _headers(tls: ServerCertificate | None) -> list[tuple[str, str]]:
    """Return the headers of every response. With a certificate that an authority vouches for, browsers use this name
    with TLS only. With one of its own they must not be told so: they would then refuse it without a way out.
    """
    if tls is None or tls.is_self_signed:
        return []
    return [("strict-transport-security", STRICT)]


def _listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket. It names its protocol, because otherwise asyncio does not set
    TCP_NODELAY."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise _listen_error(host, port, error) from error
    return bound


def _listen_error(host: str, port: int, error: OSError) -> TrunklineError:
    if error.errno == errno.EADDRINUSE:
        return TrunklineError(
            f"The gateway cannot listen on {host}:{port}: the port is in use.",
            hint="Stop the program that uses it, or set gateway.port in trunkline.toml (0 takes any free one).",
        )
    if error.errno == errno.EACCES:
        return TrunklineError(
            f"The gateway may not listen on {host}:{port}.", hint="Set gateway.port to one above 1023."
        )
    return TrunklineError(
        f"The gateway cannot listen on {host}:{port}: {error.strerror or error}.",
        hint="Set gateway.host to an address of this machine, 127.0.0.1 for instance.",
    )


def _address(bound: socket.socket, scheme: str) -> str:
    host, port = bound.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
