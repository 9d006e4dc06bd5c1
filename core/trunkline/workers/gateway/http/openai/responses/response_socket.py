"""The Responses API over a WebSocket: ``response.create`` messages in, the events of their responses out, one response
after the other.

A response that is not stored can be continued on its socket only, so the socket remembers its turn. A client that
disconnects misses events, and no turn ends: a stored response can be retrieved.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from opentelemetry import trace
from starlette.websockets import WebSocket, WebSocketDisconnect

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import app_state_of, is_owner
from trunkline.workers.gateway.http.block_watch import while_readable
from trunkline.workers.gateway.http.blocking_approvals import watch_blocking_approvals
from trunkline.workers.gateway.http.openai.responses.response_events import RESPONSE_EVENTS, ResponseEvent
from trunkline.workers.gateway.http.openai.responses.response_routes import watch_response
from trunkline.workers.gateway.http.openai.responses.response_schemas import CreateResponse
from trunkline.workers.gateway.http.openai.responses.response_stream import Events, ResponseStream
from trunkline.workers.gateway.http.openai.responses.response_turns import AcceptedResponse, accept_response
from trunkline.workers.gateway.http.openai.schemas import ErrorDetail, FullStruct, error_object
from trunkline.workers.gateway.http.request_reader import decode_json
from trunkline.workers.gateway.http.responses import STATUS, error_code_for, error_response
from trunkline.workers.gateway.http.schemas.schema_base import In
from trunkline.workers.gateway.http.scoped_route import ScopedWebSocketRoute
from trunkline.workers.gateway.queue_limiter import QueueFull
from trunkline_bus import background_tasks, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.gateway")

CREATE = "response.create"
QUEUED = 8
"""The number of messages that wait while a response is written. The server reads no more until then."""

REMEMBERED = 32
"""The number of responses that are not stored and that a socket can continue, the newest ones."""

GOING_AWAY, UNSUPPORTED = 1012, 1003


class ClientEvent(In, frozen=True, kw_only=True):
    """A message of the client: ``type`` is ``response.create``."""

    type: str


class CreateResponseEvent(CreateResponse, frozen=True, kw_only=True):
    """``response.create``: the body of ``POST /v1/responses``, without ``stream`` and ``background``."""

    type: str
    generate: bool | None = None
    stream_id: str | None = None


class SocketError(FullStruct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A message of the client was refused. ``status`` is the HTTP status of the same error."""

    status: int
    error: ErrorDetail


async def responses_socket(socket: WebSocket) -> None:
    """``WebSocket /v1/responses``"""
    await socket.accept()
    await ResponseSocket(socket).run()


async def unknown_socket(socket: WebSocket) -> None:
    """Refuse a handshake at any other path of OpenAI's API."""
    await socket.send_denial_response(error_response(ErrorCode.NOT_FOUND, socket.url.path))


ROUTES = (
    ScopedWebSocketRoute("/v1/responses", responses_socket, scope=TokenScope.CHAT),
    ScopedWebSocketRoute("/v1/{path:path}", unknown_socket, scope=TokenScope.READ),
)
SOCKET_EVENTS: tuple[type, ...] = (*RESPONSE_EVENTS, SocketError)


class ResponseSocket:
    """One connection."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._sending = anyio.Lock()
        self._unstored: OrderedDict[str, str] = OrderedDict()
        """The turns of responses that are not stored, by the ids of the responses."""

    async def run(self) -> None:
        """Answer the messages until the client disconnects or the server stops."""
        waiting, messages = anyio.create_memory_object_stream[str](QUEUED)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._receive, waiting, tasks.cancel_scope)
            tasks.start_soon(self._until_closing, tasks.cancel_scope)
            async with messages:
                async for text in messages:
                    await self._answer(text)

    async def _receive(self, waiting: MemoryObjectSendStream[str], scope: anyio.CancelScope) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return scope.cancel()
            if message.get("text") is None:
                await self._close(UNSUPPORTED)
                return scope.cancel()
            await waiting.send(message["text"])

    async def _until_closing(self, scope: anyio.CancelScope) -> None:
        await app_state_of(self._socket).closing.wait()
        await self._close(GOING_AWAY)
        scope.cancel()

    async def _close(self, code: int) -> None:
        with anyio.CancelScope(shield=True):
            async with self._sending:
                await self._socket.close(code)

    async def _answer(self, text: str) -> None:
        """Send the events of one response, or why there is none."""
        previous: str | None = None
        try:
            event = _decoded(text)
            previous = event.previous_response_id
            with start_span(tracer, CREATE, kind=trace.SpanKind.SERVER):
                accepted = await accept_response(
                    self._socket, event, retry_count=None, unstored=self._unstored
                )
            await self._send_events(accepted, previous)
        except WebSocketDisconnect:
            raise
        except Exception as error:
            self._unstored.pop(previous or "", None)
            await self._send(self._error(error))

    async def _send_events(self, accepted: AcceptedResponse, previous: str | None) -> None:
        parts, turn = app_state_of(self._socket), accepted.turn
        builder = turn.builder(detail=is_owner(self._socket))
        watch = watch_response(parts, turn, fresh=not accepted.accepted.duplicate)
        stream = ResponseStream(builder, watch, accepted)
        questions = watch_blocking_approvals(parts, watch, accepted.accepted)

        async def send() -> None:
            async with background_tasks() as tasks:
                tasks.start_soon(self._send_all, stream.blocking_events(questions))
                await self._send_all(stream.events(self._socket))

        await while_readable(self._socket, accepted.accepted.block, send)
        if builder.resource.status == "failed":
            self._unstored.pop(previous or "", None)
        elif not turn.request.stored:
            self._unstored[turn.id] = turn.turn
            if len(self._unstored) > REMEMBERED:
                self._unstored.popitem(last=False)

    async def _send_all(self, events: AsyncGenerator[Events, None]) -> None:
        async with aclosing(events):
            async for some in events:
                await self._send(*some)

    async def _send(self, *events: ResponseEvent | SocketError) -> None:
        async with self._sending:
            for event in events:
                await self._socket.send_text(msgspec.json.encode(event).decode())

    def _error(self, error: Exception) -> SocketError:
        wrong = error if isinstance(error, InvalidField | QueueFull) else None
        code = error_code_for(self._socket, error)
        return SocketError(status=STATUS[code], error=error_object(code, wrong=wrong).error)


def _decoded(text: str) -> CreateResponseEvent:
    """Return a message of the client. Raises InvalidField."""
    body = text.encode("utf-8", "replace")
    if decode_json(body, ClientEvent).type != CREATE:
        raise InvalidField(("type",), f"It is {CREATE}.")
    event = decode_json(body, CreateResponseEvent)
    unsupported: dict[str, Any] = {
        "background": event.background,
        "generate": event.generate is False,
        "stream_id": event.stream_id,
    }
    for name, value in unsupported.items():
        if value:
            raise InvalidField((name,), "It is not supported over a WebSocket.", ErrorCode.INVALID_REQUEST)
    return event
