"""The checks of every request and WebSocket handshake before its handler, in this order: repeated headers, host,
origin, hidden path and credentials.

The middleware adds a correlation id to every response, starts a span for each request with an unsafe method, and
responds to exceptions of handlers. The host check prevents a web page from reaching the server under the page's own
host name (DNS rebinding). The origin check prevents a page of another origin from sending unsafe requests with a
person's browser (design section 7.10).
"""

import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Tracer
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.contracts.gateway.access import OWNER, Identity
from trunkline.errors import ErrorCode, Unavailable
from trunkline.runtime.http.auth import CREDENTIALS, HttpAuth, is_own_origin
from trunkline_bus import background_tasks, new_id, remote_parent, start_span

log = logging.getLogger(__name__)

INTERNAL_ERROR, SIGNED_OUT = 1011, 4401
"""The codes with which a WebSocket is closed after an internal error, and when its credential has ended."""

SAFE = ("GET", "HEAD", "OPTIONS")
SINGLE_HEADERS = ("host", "origin", "sec-fetch-site")
"""The headers that name the origin and the target of a request."""

CORRELATION = "trunkline.correlation"
"""The key of the correlation id in a request's scope."""

IDENTITY = "trunkline.identity"
"""The key of the identity in a request's scope."""

TICKET_PROTOCOL = "ticket."
"""The beginning of the sub-protocol that carries a ticket in the handshake of a WebSocket."""

UNKNOWN_HOST = (
    "The server does not know the host name of this request. Name it in [gateway] allowed_hosts, and have a proxy pass "
    "on the Host of the browser."
)
OTHER_ORIGIN = (
    "The request comes from a page of another origin than its Host. A proxy must pass on Host and Origin as the "
    "browser sends them."
)

RefusalFactory = Callable[[ErrorCode, str, str], ASGIApp]
"""Builds the response to a failure at a path, in the form that its clients expect, with a reason or ""."""


class RefusedRequest(NamedTuple):
    """Why a request does not reach its handler: the code, and what its sender can do about it, "" for nothing."""

    code: ErrorCode
    why: str = ""


class AuthMiddleware:
    """ASGI middleware. ``open_paths`` need no credential, and neither does a path that has exactly one part more than
    one of ``open_folders``. ``host`` is the address that the server listens on, ``hosts`` are further host names of the
    server. The path ``hidden`` and the paths below it respond with not found.

    ``redeem_ticket`` returns the identity of a ticket, once. The WebSocket at ``ticket_path`` takes one in place of
    another credential.
    """

    def __init__(
        self,
        app: ASGIApp,
        auth: HttpAuth,
        refuse: RefusalFactory,
        tracer: Tracer,
        host: str,
        hosts: Collection[str] = (),
        open_paths: Collection[str] = (),
        open_folders: Collection[str] = (),
        hidden: str = "",
        redeem_ticket: Callable[[str], Awaitable[Identity | None]] | None = None,
        ticket_path: str = "",
    ) -> None:
        self._app = app
        self._auth = auth
        self._refuse = refuse
        self._tracer = tracer
        self._hidden = hidden
        self._redeem_ticket = redeem_ticket
        self._ticket_path = ticket_path
        self._hosts = _own_names(host) | {name.lower() for name in hosts}
        self._open = frozenset(open_paths)
        self._open_folders = frozenset(open_folders)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the application, or refuse the request."""
        if scope["type"] not in ("http", "websocket"):
            return
        refused = await self._refused(scope, _decoded_headers(scope))
        if refused is not None:
            response = self._refuse(refused.code, scope["path"], refused.why)
            await response(scope, receive, _TracedSend(scope, send).send)
        elif scope["type"] == "websocket" or scope["method"] in SAFE:
            await self._guarded(scope, receive, _TracedSend(scope, send))
        else:
            with remote_parent(dict(_decoded_headers(scope)).get("traceparent")):
                await self._traced(scope, receive, send)

    async def _refused(self, scope: Scope, headers: list[tuple[str, str]]) -> RefusedRequest | None:
        path = scope["path"]
        if (refused := self._refused_origin(scope, headers)) is not None:
            return refused
        if self._hidden and (path == self._hidden or path.startswith(self._hidden + "/")):
            return RefusedRequest(ErrorCode.NOT_FOUND)
        if path in self._open or path.rpartition("/")[0] in self._open_folders:
            return None
        try:
            identity = await self._identify(scope, headers)
        except Unavailable as error:
            log.warning("a request to %s is refused: %s", path, error)
            return RefusedRequest(ErrorCode.ENGINE_UNAVAILABLE)
        scope[IDENTITY] = identity
        return None if identity is not None else RefusedRequest(ErrorCode.UNAUTHORIZED)

    def _refused_origin(self, scope: Scope, headers: list[tuple[str, str]]) -> RefusedRequest | None:
        """Return why the headers that name the origin and the target of a request are refused; None if they are not."""
        given = dict(headers)
        if any(sum(name == one for name, _ in headers) > 1 for one in SINGLE_HEADERS):
            return RefusedRequest(ErrorCode.FORBIDDEN)  # ambiguous: the header is repeated
        if not self._is_own_host(given.get("host", "")):
            return RefusedRequest(ErrorCode.FORBIDDEN, UNKNOWN_HOST)
        is_unsafe = scope["type"] == "websocket" or scope["method"] not in SAFE
        if is_unsafe and not is_own_origin(given):
            return RefusedRequest(ErrorCode.FORBIDDEN, OTHER_ORIGIN)
        if scope["type"] == "websocket" and "origin" not in given and self._is_browser(headers):
            # every browser names the origin of a WebSocket
            return RefusedRequest(ErrorCode.FORBIDDEN, OTHER_ORIGIN)
        return None

    async def _identify(self, scope: Scope, headers: list[tuple[str, str]]) -> Identity | None:
        """Return who sends a request: by its ticket if it may have one, else by its headers. Raises Unavailable."""
        tickets = [one for one in scope.get("subprotocols", ()) if one.startswith(TICKET_PROTOCOL)]
        if not tickets or scope["path"] != self._ticket_path or self._redeem_ticket is None:
            return await self._auth.identify(headers)
        others = sum(name in CREDENTIALS for name, _ in headers) + len(self._auth.session_tokens(headers))
        if len(tickets) + others > 1:
            return None  # ambiguous: several credentials
        return await self._redeem_ticket(tickets[0].removeprefix(TICKET_PROTOCOL))

    async def _traced(self, scope: Scope, receive: Receive, send: Send) -> None:
        attributes = {"http.request.method": scope["method"]}
        with start_span(self._tracer, scope["method"], kind=SpanKind.SERVER, attributes=attributes) as span:
            exit_ = _TracedSend(scope, send)
            await self._guarded(scope, receive, exit_)
            _note_route(span, scope)
            _note_outcome(span, exit_)

    async def _guarded(self, scope: Scope, receive: Receive, exit_: "_TracedSend") -> None:
        try:
            await self._until_ended(scope, receive, exit_)
        except ClientDisconnect:
            log.info(
                "a client disconnected while sending a request to %s (%s)", scope["path"], scope[CORRELATION]
            )
        except Exception:
            log.exception("a request to %s failed (%s)", scope["path"], scope[CORRELATION])
            if scope["type"] == "websocket":
                await _send_close(exit_.send)
            elif not exit_.status:
                await self._refuse(ErrorCode.INTERNAL, scope["path"], "")(scope, receive, exit_.send)

    async def _until_ended(self, scope: Scope, receive: Receive, exit_: "_TracedSend") -> None:
        """Run the application, and end the request, stream or WebSocket as soon as its credential has ended."""
        identity: Identity | None = scope.get(IDENTITY)
        if identity is None or identity == OWNER:  # nothing ends the token of the home
            await self._app(scope, receive, exit_.send)
            return
        ended = self._auth.ended(identity)
        async with background_tasks() as tasks:
            tasks.start_soon(_cancel_after, ended, tasks.cancel_scope)
            await self._app(scope, receive, exit_.send)
        if ended.is_set() and not exit_.is_complete:
            await self._end(scope, receive, exit_)

    async def _end(self, scope: Scope, receive: Receive, exit_: "_TracedSend") -> None:
        if scope["type"] == "websocket":
            await _send_close(exit_.send, SIGNED_OUT)
        elif exit_.status:
            await exit_.send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await self._refuse(ErrorCode.UNAUTHORIZED, scope["path"], "")(scope, receive, exit_.send)

    def _is_browser(self, headers: list[tuple[str, str]]) -> bool:
        """Report whether a request seems to come from a browser: by its name, or because it has a session."""
        return any(name == "user-agent" and "mozilla/" in value.lower() for name, value in headers) or bool(
            self._auth.session_tokens(headers)
        )

    def _is_own_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._hosts or ("*" in self._hosts and _is_address(name))


class _TracedSend:
    """Sends the response: adds the correlation id and records the status (0 = not begun).

    The correlation id is the id of the trace, so it leads to log lines and spans; without a span it is a new id. It is
    never taken from a body.
    """

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self.status = 0
        self.is_complete = False
        span = trace.get_current_span().get_span_context()
        self._correlation = f"{span.trace_id:032x}" if span.is_valid else new_id("req")
        scope[CORRELATION] = self._correlation

    async def send(self, message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            extra = (
                (b"x-correlation-id", self._correlation.encode()),
                (b"x-content-type-options", b"nosniff"),
            )
            message = {**message, "headers": [*message["headers"], *extra]}
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.is_complete = True
        await self._send(message)


async def _cancel_after(ended: anyio.Event, running: anyio.CancelScope) -> None:
    await ended.wait()
    running.cancel()


async def _send_close(send: Send, code: int = INTERNAL_ERROR) -> None:
    """Close a WebSocket, unless it is closed already."""
    with suppress(RuntimeError, OSError):
        await send({"type": "websocket.close", "code": code})


def _decoded_headers(scope: Scope) -> list[tuple[str, str]]:
    """Return the headers as text. They are not kept, because a WebSocket may stay open for days."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]


def _own_names(host: str) -> frozenset[str]:
    """Return the host names of the server; ``*`` stands for any IP address."""
    local = {"localhost", "127.0.0.1", "::1"}
    if host in local or (_is_address(host) and ipaddress.ip_address(host).is_loopback):
        return frozenset(local | {host})
    name = socket.gethostname().lower()
    return frozenset(local | {host, name, f"{name}.local", "*"})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _note_route(span: Span, scope: Scope) -> None:
    """Name the span by the method and the route, never by an id. Without a route the span keeps the method as its
    name."""
    if "endpoint" not in scope:
        return
    parts = scope["path"].split("/")
    for name, value in reversed((scope.get("path_params") or {}).items()):
        if value in parts:
            at = len(parts) - 1 - parts[::-1].index(value)
            parts[at] = f"{{{name}}}"
    route = "/".join(parts)
    span.update_name(f"{scope['method']} {route}")
    span.set_attribute("http.route", route)


def _note_outcome(span: Span, exit_: _TracedSend) -> None:
    span.set_attribute("http.response.status_code", exit_.status)
    if exit_.status >= 500:
        span.set_attribute("error.type", str(exit_.status))
