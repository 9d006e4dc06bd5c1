"""Our server as the suite reaches it: over HTTP, with the whole application around it. The suite sends no token, so a
layer before the application adds it, as a client of ours would.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.lowlevel import Server

from trunkline.api.bus import Bus
from trunkline.api.gateway import BlockGuard
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.http.auth import HttpAuth
from trunkline_mcp.block_server.transports import PATH, build_app

TOKEN = "the-suite's-token"


class WithToken:
    """Adds a token to every request."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and self._token:
            headers = [*scope["headers"], (b"authorization", f"Bearer {self._token}".encode())]
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


def owner_guard() -> BlockGuard:
    """A guard that knows the token of the home alone: its owner needs no policies, so no bus is asked."""
    return BlockGuard(HttpAuth(TOKEN, ()), BlockAccess(cast("Bus", None)), "main")


@asynccontextmanager
async def at_address(
    server: Server[Any], port: int = 0, *, guard: BlockGuard | None = None, token: str = TOKEN
) -> AsyncIterator[str]:
    """The server's address, while the context lasts; on any port when none is named. With ``token=""`` a client has to
    send its own."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        config = uvicorn.Config(
            WithToken(build_app(server, guard or owner_guard()), token),
            log_config=None,
            lifespan="on",
            timeout_graceful_shutdown=1,
        )
        running = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
            running.should_exit = True
