"""``/ws``: the handshake of a socket, and the tickets for clients that cannot send a header with it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.ticket import TICKET_SECONDS
from trunkline.errors import ErrorCode
from trunkline.runtime.http.auth_middleware import TICKET_PROTOCOL
from trunkline.workers.gateway.http.app_state import app_state_of, sender_of
from trunkline.workers.gateway.http.responses import error_response, json_response
from trunkline.workers.gateway.http.schemas.platform_schemas import TicketIssued
from trunkline.workers.gateway.http.scoped_route import ScopedRoute, ScopedWebSocketRoute
from trunkline.workers.gateway.socket.connection import Connection
from trunkline_bus import Refusal

PATH, TICKET_PATH = "/ws", "/api/ws-ticket"
PROTOCOL = "trunkline.v1"
"""The sub-protocol. A browser that offers sub-protocols disconnects unless the server takes one."""


async def open_socket(socket: WebSocket) -> None:
    """``WebSocket /ws``"""
    state = app_state_of(socket)
    connection = Connection(socket, state.sockets, sender_of(socket), state.max_text_body)
    try:
        with state.sockets.registered(connection):
            await socket.accept(PROTOCOL if PROTOCOL in socket.scope["subprotocols"] else None)
            socket.scope["headers"] = []  # a socket that stays open for days needs no memory for them
            await connection.run()
    except Refusal:
        await socket.send_denial_response(error_response(ErrorCode.RATE_LIMITED, PATH))


async def issue_ticket(request: Request) -> Response:
    """``POST /api/ws-ticket``"""
    state, identity = app_state_of(request), sender_of(request).identity
    ticket = await state.tickets.issue(identity)
    protocols = (PROTOCOL, f"{TICKET_PROTOCOL}{ticket}")
    return json_response(TicketIssued(ticket=ticket, seconds=TICKET_SECONDS, protocols=protocols), 201)


ROUTES = (
    ScopedWebSocketRoute(PATH, open_socket, scope=TokenScope.READ),
    ScopedRoute(TICKET_PATH, issue_ticket, methods=["POST"], scope=TokenScope.READ),
)
