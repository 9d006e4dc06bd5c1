"""Serves an ASGI application inside a worker, on a socket that is already bound. Serves no WebSockets, and installs no
signal handlers.
"""

import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from starlette.types import ASGIApp

CLOSING_SECONDS = 2.0


async def serve_app(app: "ASGIApp", listening: socket.socket) -> None:
    """Serve until cancelled. Then running responses get CLOSING_SECONDS to end, and the socket is closed."""
    from uvicorn import Config, Server

    from trunkline.runtime.http.timeouts import timeout_protocol

    class Quiet(Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the supervisor handles signals

    config = Config(
        app,
        http=timeout_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
    )
    config.timeout_graceful_shutdown = int(CLOSING_SECONDS)
    server = Quiet(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_cancelled, server)
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[listening])
        tasks.cancel_scope.cancel()


async def _until_cancelled(server: object) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        server.should_exit = True  # type: ignore[attr-defined]
