"""Our server as the suite reaches it: over HTTP, with the whole application around it. The suite sends no token, so a
layer before the application adds it, as a client of ours would.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import Server

from trunkline_mcp.block_server.transports import PATH, build_app

TOKEN = "the-suite's-token"


class WithToken:
    """Adds the token to every request."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


@asynccontextmanager
async def at_address(server: Server[Any], port: int = 0) -> AsyncIterator[str]:
    """The server's address, while the context lasts; on any port when none is named."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        config = uvicorn.Config(
            WithToken(build_app(server, TOKEN)), log_config=None, lifespan="on", timeout_graceful_shutdown=1
        )
        running = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
            running.should_exit = True
