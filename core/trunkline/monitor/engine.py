"""The bare agent loop over HTTP: ``POST /engine/chat`` on loopback (PA-F31 to PA-F33), so that it can be swapped.

Messages and tools in, events out. The same machine and runner as a durable turn, without journal, feed stream or
storage: nothing is persisted, no prompt is built, nobody is authenticated beyond the two actor headers.
"""

import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec

from trunkline.config.settings import MonitorSettings
from trunkline.errors import FIXED_SENTENCES, ErrorCode, ModelError, StorageError
from trunkline.messages.conversation import Message, ToolCall
from trunkline.messages.turn import (
    FeedEvent,
    Started,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnRequested,
)
from trunkline.monitor.acting import Actor
from trunkline.monitor.briefing import Briefer
from trunkline.monitor.mailbox import Mailbox
from trunkline.monitor.models import Choice, Models
from trunkline.monitor.runner import Means, Runner
from trunkline.monitor.turn import Turn
from trunkline.runtime.feed_journal import Told
from trunkline.runtime.http import serve_app
from trunkline_bus import BusError, new_id

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


class EngineMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as PA-F31 writes it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class EngineMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What goes with a request; only ``correlation_id`` is required."""

    correlation_id: str
    conversation_id: str | None = None
    trigger: str = "message"
    client_context: dict[str, Any] = {}


class EngineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request body."""

    messages: tuple[EngineMessage, ...]
    metadata: EngineMetadata


class EngineServer:
    """Serves the loop on a loopback port. The port may be taken by another monitor here; then a free one is used."""

    def __init__(self, settings: MonitorSettings, models: Models, briefer: Briefer, actor: Actor) -> None:
        self._settings = settings
        self._models = models
        self._briefer = briefer
        self._actor = actor
        self._socket: socket.socket | None = None

    @property
    def url(self) -> str:
        """Where it listens, such as ``http://127.0.0.1:8421``; "" before ``open()``."""
        return "" if self._socket is None else "http://{}:{}".format(*self._socket.getsockname())

    async def open(self) -> None:
        """Bind the port."""
        self._socket = _bound(self._settings.engine_port)
        log.info("agent loop on %s/engine/chat", self.url)

    async def run(self) -> None:
        """Serve until cancelled."""
        assert self._socket is not None
        await serve_app(self._app(), self._socket)

    def _app(self) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(routes=[Route("/engine/chat", self._chat, methods=["POST"])])

    async def _chat(self, request: "Request") -> "Response":
        from starlette.responses import StreamingResponse

        actor = request.headers.get("x-actor-id")
        if not actor or "x-actor-permissions" not in request.headers:
            return _refused(401, ErrorCode.UNAUTHORIZED)
        try:
            wish = msgspec.json.decode(await request.body(), type=EngineRequest)
        except msgspec.DecodeError as error:
            log.info("engine request refused: %s", error)
            return _refused(400, ErrorCode.INVALID_REQUEST)
        if not wish.messages or not wish.metadata.correlation_id:
            return _refused(400, ErrorCode.INVALID_REQUEST)
        return StreamingResponse(self._events(wish, actor), media_type="text/event-stream")

    async def _events(self, wish: EngineRequest, actor: str) -> AsyncIterator[bytes]:
        send, receive = anyio.create_memory_object_stream[FeedEvent](1000)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._loop, wish, actor, _Show(send.send))
            async with receive:
                async for event in receive:
                    for line in _sse(event):
                        yield line
                    if isinstance(event, TurnEnded):
                        break
            tasks.cancel_scope.cancel()

    async def _loop(self, wish: EngineRequest, actor: str, show: "_Show") -> None:
        """Run the loop; whatever happens, it ends with an event that says so."""
        try:
            await self._run(_request(wish, actor), show)
        except (BusError, BaseExceptionGroup) as error:
            log.exception("engine request %s failed", wish.metadata.correlation_id, exc_info=error)
            await show.emit(TurnEnded(reason="error", code=ErrorCode.TOOL_ERROR))

    async def _run(self, request: TurnRequested, show: "_Show") -> None:
        async def nowhere(_: object) -> None:
            return None

        briefing = await self._briefer.brief(request, [])
        try:
            choice: Choice | ModelError = self._models.choose(briefing.preference)
        except ModelError as error:
            choice = error
        means = Means(
            models=self._models,
            actor=self._actor,
            record=nowhere,
            store=nowhere,
            settle=nowhere,
            stop=lambda turn: None,
            silence=self._settings.model_silence,
            window=self._settings.coalesce,
            max_answer=self._settings.max_answer,
            patience=0.0,
        )
        runner = Runner(Turn(), briefing, choice, show, means, Mailbox(request.turn))
        await runner.run(Started(request=request, model="", context=()))


class _Show:
    """Shows events to the caller alone."""

    def __init__(self, send: Callable[[FeedEvent], Awaitable[None]]) -> None:
        self._send = send

    async def emit(self, *events: FeedEvent) -> None:
        """Send them on."""
        for event in events:
            await self._send(event)

    async def tell(self, *told: Told) -> None:
        """Send them on."""
        await self.emit(*(one.event for one in told))


def _request(wish: EngineRequest, actor: str) -> TurnRequested:
    messages = tuple(
        Message(
            id=new_id("msg"),
            role=message.role,
            content=message.content,
            tool_calls=message.tool_calls,
            tool_call_id=message.tool_call_id,
        )
        for message in wish.messages
    )
    return TurnRequested(
        turn=new_id("turn"),
        block=str(wish.metadata.client_context.get("block", "main")),
        conversation=wish.metadata.conversation_id or wish.metadata.correlation_id,
        message=messages[-1],
        history=messages[:-1],
        actor=actor,
        channel="engine",
    )


def _sse(event: FeedEvent) -> list[bytes]:
    match event:
        case TextDelta(text=text):
            return [_line("text-delta", {"content": text})]
        case ToolStarted(call=call):
            return [_line("tool-call", {"id": call.id, "name": call.name, "arguments": call.arguments})]
        case ToolEnded(call_id=id, output=output, error=error):
            return [_line("tool-result", {"id": id, "error" if error else "output": output})]
        case TurnEnded(code=code) if code is not None:
            known = code in (ErrorCode.PROVIDER_ERROR, ErrorCode.TOOL_ERROR, ErrorCode.CONTEXT_OVERFLOW)
            safe = code if known else ErrorCode.PROVIDER_ERROR
            return [_line("error", {"code": safe, "message": FIXED_SENTENCES[safe]})]
        case TurnEnded(reason=reason, usage=usage):
            tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
            return [_line("done", {"finish_reason": reason, "usage": tokens})]
        case _:
            return []


def _line(event: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))


def _refused(status: int, code: ErrorCode) -> "Response":
    from starlette.responses import Response

    body = msgspec.json.encode({"code": code, "message": FIXED_SENTENCES[code]})
    return Response(body, status, media_type="application/json")


def _bound(port: int) -> socket.socket:
    """A listening socket on the loopback port, or on a free one when it is taken.

    It names its protocol, or asyncio would not send small pieces at once (TCP_NODELAY).
    """
    for wish in (port, 0):
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, wish))
            listening.listen(128)
            return listening
        except OSError:
            listening.close()
    raise StorageError(f"no port can be bound on {LOOPBACK}", hint="Check the limits of this machine.")
