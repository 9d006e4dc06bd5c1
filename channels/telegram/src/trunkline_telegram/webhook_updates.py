"""Receives updates by HTTP, for a bot with a webhook. A reverse proxy with TLS passes Telegram's requests on."""

import hmac
import logging
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

log = logging.getLogger(__name__)

SECRET_HEADER = "x-telegram-bot-api-secret-token"
"""The header in which Telegram sends the secret that it was given."""

MAX_BYTES = 1_048_576
"""Bytes of the largest update that is read."""

ANSWER_SECONDS = 25.0
"""Seconds within which an update is confirmed. After that Telegram sends it again."""

MAX_WAITING = 16
"""Updates that wait at once. Telegram keeps the others."""


@dataclass(frozen=True, slots=True)
class WaitingUpdate:
    """An update that Telegram sent. It is confirmed when ``taken`` is set."""

    raw: dict[str, Any]
    taken: anyio.Event = field(default_factory=anyio.Event)


class UpdateReceiver:
    """The HTTP application that receives updates.

    Guarantees: a request without the secret changes nothing. An update is confirmed when ``taken`` is set, and else
    sent again by Telegram.

    Not guaranteed: that an update is received once.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._send, self._updates = anyio.create_memory_object_stream[WaitingUpdate](MAX_WAITING)

    def app(self) -> Starlette:
        """Return the application, which answers at every path. Raises nothing."""
        return Starlette(routes=[Route("/{path:path}", self._receive, methods=["POST"])])

    async def next_update(self) -> WaitingUpdate:
        """Return the next update. Raises nothing."""
        return await self._updates.receive()

    async def _receive(self, request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get(SECRET_HEADER, "").encode(), self._secret):
            return Response("The request has no valid secret.", 401)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                return Response("The update is too large.", 413)
        try:
            waiting = WaitingUpdate(msgspec.json.decode(body, type=dict[str, Any]))
        except msgspec.MsgspecError:
            return Response("The body is not an update.", 400)
        try:
            self._send.send_nowait(waiting)
        except anyio.WouldBlock:
            return Response("Other updates wait.", 503)
        with anyio.move_on_after(ANSWER_SECONDS):
            await waiting.taken.wait()
            return Response()
        return Response("The gateway is away.", 503)
