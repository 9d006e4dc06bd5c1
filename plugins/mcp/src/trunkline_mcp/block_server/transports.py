"""The transports of the block server: standard input and output, or HTTP on this machine with the home's token."""

import hmac
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

import trunkline

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
PATH = "/mcp"
CREDENTIALS = (b"authorization", b"x-api-key")
"""A request carries one of them at most: which counts would be a guess. Only the first one can hold the token here."""

CHANGES = NotificationOptions(tools_changed=True)


async def serve_stdio(server: "Server[Any]") -> None:
    """Answer on standard input and output until the input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options(CHANGES))


async def serve_http(server: "Server[Any]", port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve over HTTP on this machine until cancelled; ``ready`` is called with the address. Raises TrunklineError for
    a port that is in use."""
    import uvicorn

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise trunkline.TrunklineError(
                f"Port {port} of {HOST} cannot be used: {error.strerror}.",
                hint="Choose another --port, or leave it out for any free one.",
            ) from error
        config = uvicorn.Config(build_app(server, token), log_config=None, access_log=False, lifespan="on")
        ready(f"http://{HOST}:{listener.getsockname()[1]}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


def build_app(server: "Server[Any]", token: str) -> "ASGIApp":
    """The application: only who has the token gets in, and only by a name of this machine (the SDK looks at Host and
    Origin, so that no web page reaches it by another name)."""
    return TokenMiddleware(token, server.streamable_http_app(streamable_http_path=PATH, host=HOST))


class TokenMiddleware:
    """Lets nobody in without the token, which must be in the header."""

    def __init__(self, token: str, app: "ASGIApp") -> None:
        self._wanted = f"Bearer {token}".encode()
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass on what may pass."""
        if scope["type"] != "http" or self._is_authorized(scope):
            return await self._app(scope, receive, send)
        headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"The token is missing or wrong.\n"})

    def _is_authorized(self, scope: "Scope") -> bool:
        given = [value for name, value in scope["headers"] if name in CREDENTIALS]
        return len(given) == 1 and hmac.compare_digest(given[0], self._wanted)
