"""Routes that declare the scope that a request needs. A request whose token has less is refused before the handler.

Every route of the gateway is one of these, so no handler can be reached without a declared scope. What a request may do
in a block is decided by the services.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.errors import ErrorCode
from trunkline.runtime.http.auth_middleware import IDENTITY
from trunkline.workers.gateway.http.responses import error_response


class ScopedRoute(Route):
    """A route for HTTP requests. ``scope`` None is a route that needs no credential. With ``all_blocks`` a token for
    some blocks is refused, because nobody checks which blocks the handler shows.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Any], Awaitable[Any]],
        *,
        methods: Sequence[str],
        scope: TokenScope | None,
        all_blocks: bool = False,
    ) -> None:
        super().__init__(path, endpoint, methods=list(methods))
        self.scope = scope
        self.all_blocks = all_blocks

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the handler, or refuse the request."""
        refused = _refused(self.scope, scope, all_blocks=self.all_blocks)
        if refused is None:
            return await super().handle(scope, receive, send)
        await error_response(refused, scope["path"])(scope, receive, send)


class ScopedWebSocketRoute(WebSocketRoute):
    """A route for the handshakes of WebSockets."""

    def __init__(
        self, path: str, endpoint: Callable[[WebSocket], Awaitable[None]], *, scope: TokenScope
    ) -> None:
        super().__init__(path, endpoint)
        self.scope = scope

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the handshake to the handler, or refuse the handshake."""
        refused = _refused(self.scope, scope)
        if refused is None:
            await self.endpoint(WebSocket(scope, receive, send))
            return
        await error_response(refused, scope["path"])(scope, receive, send)


class SocketRouter:
    """ASGI middleware between authentication and Starlette's router: passes a handshake at the path of a WebSocket
    route to that route. Everything else, and a path with parameters, is left to the router.

    The router's layers return when a socket closes. Until then each of them would take memory for every open socket.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[ScopedWebSocketRoute]) -> None:
        self._app = app
        self._routes = {route.path: route for route in routes if not route.param_convertors}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass a handshake to its route, and anything else to the router."""
        route = self._routes.get(scope["path"]) if scope["type"] == "websocket" else None
        return (self._app if route is None else route.handle)(scope, receive, send)


def _refused(needed: TokenScope | None, scope: Scope, *, all_blocks: bool = False) -> ErrorCode | None:
    """Return why a request is refused; None if it is not."""
    identity = cast("Identity | None", scope.get(IDENTITY))
    if needed is None:
        return None
    if identity is None:
        return ErrorCode.UNAUTHORIZED
    reaches = identity.may(needed) and not (all_blocks and identity.blocks is not None)
    return None if reaches else ErrorCode.FORBIDDEN
