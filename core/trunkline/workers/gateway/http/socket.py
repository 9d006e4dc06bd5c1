"""``/ws``: the handshake of a socket, and the tickets for clients that cannot send a header with it."""

from starlette.websockets import WebSocket

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.http.app_state import app_state_of, sender_of
from trunkline.workers.gateway.http.responses import error_response
from trunkline.workers.gateway.http.scoped_route import ScopedWebSocketRoute
from trunkline.workers.gateway.socket.connection import Connection
from trunkline_bus import Refusal

PATH = "/ws"
PROTOCOL = "trunkline.v1"
"""The sub-protocol. A browser that offers sub-protocols disconnects unless the server takes one."""


async def open_socket(socket: WebSocket) -> None:
    """``WebSocket /ws``"""
    state = app_state_of(socket)
    connection = Connection(socket, state.sockets, sender_of(socket), state.max_text_body)
    try:
        with state.sockets.registered(connection):
            await socket.accept(PROTOCOL if PROTOCOL in socket.scope["subprotocols"] else None)
            await connection.run()
    except Refusal:
        await socket.send_denial_response(error_response(ErrorCode.RATE_LIMITED, PATH))


ROUTES = (ScopedWebSocketRoute(PATH, open_socket, scope=TokenScope.READ),)
