"""The gateway's HTTP application: all routes behind the authentication middleware."""

from collections.abc import Awaitable, Callable
from typing import Literal

from opentelemetry import trace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.paths import is_block_name
from trunkline.contracts.gateway.access import HttpRoute
from trunkline.errors import ErrorCode, TrunklineError
from trunkline.plugins.ownership import OwnedItem
from trunkline.runtime.http.auth_middleware import AuthMiddleware
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.http.app_state import AppState, sender_of, services_of
from trunkline.workers.gateway.http.openapi import openapi_document as openapi
from trunkline.workers.gateway.http.request_reader import with_limited_body
from trunkline.workers.gateway.http.responses import error_response, exception_response
from trunkline.workers.gateway.http.route_table import AnyRoute, described_routes
from trunkline.workers.gateway.http.routes import locale_routes, socket
from trunkline.workers.gateway.http.scoped_route import ScopedRoute, ScopedWebSocketRoute, SocketRouter
from trunkline.workers.gateway.http.static_files import site_routes
from trunkline_bus import BusError, Refusal

__all__ = ["AppState", "build_app", "open_paths"]

Endpoint = Callable[[Request], Awaitable[Response]]

tracer = trace.get_tracer("trunkline.gateway")

METHOD_NOT_ALLOWED = 405

OPEN_FOLDERS = frozenset({locale_routes.PATH})
"""The paths below which one further part needs no credential."""

HIDDEN = "/engine"
"""The path of the bare agent loop, which another server has. Clients that ask for it here get 404 (conflict
C4)."""


def build_app(state: AppState) -> Starlette:
    """Build the application. Handlers find ``state`` as the application's state."""
    routes = all_routes(state)
    site = site_routes(state.site, routes)
    app = Starlette(
        routes=[*routes, *site],
        middleware=[
            Middleware(
                AuthMiddleware,
                auth=state.auth,
                refuse=_refusal,
                tracer=tracer,
                host=state.host,
                hosts=state.hosts,
                open_paths=open_paths(state) | {route.path for route in site},
                open_folders=OPEN_FOLDERS,
                hidden=HIDDEN,
                redeem_ticket=state.tickets.redeem,
                ticket_path=socket.PATH,
            ),
            Middleware(SocketRouter, routes=[one for one in routes if isinstance(one, ScopedWebSocketRoute)]),
        ],
        exception_handlers={
            Refusal: exception_response,
            BusError: exception_response,
            TrunklineError: exception_response,
            HTTPException: _not_found,
        },
    )
    app.router.redirect_slashes = False
    app.state.parts = state
    return app


def own_routes(metrics_for: Literal["token", "open", "off"] = "token") -> list[AnyRoute]:
    """Return the gateway's own routes."""
    return [*described_routes(metrics_for), *openapi.ROUTES]


def all_routes(state: AppState) -> list[AnyRoute]:
    """Return the gateway's own routes and those of plugins."""
    return [*own_routes(state.metrics_for), *map(_plugin_route, state.routes)]


def open_paths(state: AppState) -> frozenset[str]:
    """Return the paths that need no credential, besides those of the web app's files, which contain no data."""
    return frozenset(route.path for route in all_routes(state) if route.scope is None)


def _plugin_route(route: OwnedItem[HttpRoute]) -> ScopedRoute:
    own = route.item
    scope = None if own.public else own.scope
    endpoint = _by_block(own) if own.by_block else _with_limited_body(own)
    # What a plugin does for the owner is done with all of the owner's rights, so a token for some blocks may not ask.
    all_blocks = not own.by_block or own.scope is TokenScope.OWNER
    return ScopedRoute(_path(route), endpoint, methods=own.methods, scope=scope, all_blocks=all_blocks)


def _by_block(route: HttpRoute) -> Endpoint:
    """Return the endpoint behind a check of what the sender may do in the block that the path names."""

    async def checked(request: Request) -> Response:
        block = request.path_params["block"]
        if not is_block_name(block):
            raise refusal(ErrorCode.NOT_FOUND)
        await services_of(request).access.require(sender_of(request).identity, route.scope, block)
        response: Response = await route.endpoint(with_limited_body(request))
        return response

    return checked


def _with_limited_body(route: HttpRoute) -> Endpoint:
    """Return the endpoint for requests whose body has a limit: whoever reaches the port may send one to a public
    route."""

    async def limited(request: Request) -> Response:
        response: Response = await route.endpoint(with_limited_body(request))
        return response

    return limited


def _path(route: OwnedItem[HttpRoute]) -> str:
    return f"/x/{route.owner}/{route.item.path.lstrip('/')}"


def _refusal(code: ErrorCode, path: str, why: str) -> Response:
    """Return the response to a request that reaches no handler."""
    return error_response(code, path, why=why)


async def _not_found(request: Request, error: Exception) -> Response:
    """Respond to an unknown path, and to a method that a path does not support."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = ErrorCode.NOT_FOUND if status == 404 else ErrorCode.INVALID_REQUEST
    headers = {"allow": ", ".join(sorted(_methods(request)))} if status == METHOD_NOT_ALLOWED else {}
    return error_response(code, request.url.path, status=status, headers=headers)


def _methods(request: Request) -> set[str]:
    """Return the methods of a path. Several routes may have the same path; a path that also fits a route with a
    parameter, as ``compact`` fits ``{id}``, has the methods of its own routes only."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    own = next(route.path for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in routes if route.path == own for method in route.methods or ()}
