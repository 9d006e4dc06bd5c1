"""The transports of the block server: standard input and output, or HTTP on this machine with a token."""

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

import trunkline
from trunkline.api.gateway import BlockGuard

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
PATH = "/mcp"

CHANGES = NotificationOptions(tools_changed=True)


async def serve_stdio(server: "Server[Any]") -> None:
    """Answer on standard input and output until the input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options(CHANGES))


async def serve_http(
    server: "Server[Any]", port: int, guard: BlockGuard, ready: Callable[[str], None]
) -> None:
    """Serve over HTTP on this machine until cancelled; ``ready`` is called with the address. Raises TrunklineError for
    a port that is in use."""
    import uvicorn

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()  # before the address is told: a client that connects at once waits, it is not refused
        except OSError as error:
            raise trunkline.TrunklineError(
                f"Port {port} of {HOST} cannot be used: {error.strerror}.",
                hint="Choose another --port, or leave it out for any free one.",
            ) from error
        config = uvicorn.Config(build_app(server, guard), log_config=None, access_log=False, lifespan="on")
        ready(f"http://{HOST}:{listener.getsockname()[1]}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


def build_app(server: "Server[Any]", guard: BlockGuard) -> "ASGIApp":
    """The application behind the guard. The SDK looks at Host and Origin too, also of requests that only read."""
    return guard.protect(SessionOwner(server.streamable_http_app(streamable_http_path=PATH, host=HOST)))


class SessionOwner:
    """Tells the SDK whose credential a request has: a session of one token does not exist for another one."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass on the request."""
        if scope["type"] == "http":
            identity = BlockGuard.identity_of(scope)
            credential = AccessToken(token="", client_id=identity.id, subject=identity.token_id, scopes=[])
            scope["user"] = AuthenticatedUser(credential)
        await self._app(scope, receive, send)
