"""The bare agent loop over HTTP: ``POST /engine/chat`` on loopback, so that the loop can be replaced.

A request contains messages and tools; the response streams events. The server uses the same state machine and runner as
a durable turn, without journal, feed stream or storage: nothing is persisted and no prompt is built. The server is off
unless ``monitor.engine`` is set. It authenticates like the gateway: a request needs a Host of this server, and the
home's token or a credential that a plugin's authenticator accepts. A request from a page of another origin is refused.
The two actor headers state the caller and its permissions. A block that takes no messages at the gateway takes none
here.
"""

import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

import anyio
import msgspec
from opentelemetry import trace

from trunkline.config.settings import MonitorSettings
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.availability import block_not_found, unavailable_reason
from trunkline.contracts.blocks.paths import is_block_name
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.conversations.orphan_results import ORPHAN_RESULT_TEXT, first_orphan_result
from trunkline.contracts.gateway.access import Identity, is_home_owner
from trunkline.contracts.turns.feed_events import JournalTranslator, NumberedEvent
from trunkline.contracts.turns.feed_messages import FeedEvent, TextDelta, ToolEnded, ToolStarted, TurnEnded
from trunkline.contracts.turns.journal_messages import TurnStarted
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.errors import FIXED_SENTENCES, ErrorCode, ModelError, TrunklineError
from trunkline.policy import ActorPermissions
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.http.auth import HttpAuth
from trunkline.runtime.http.server import serve_app
from trunkline.runtime.http.validation_errors import Field, field_and_reason, json_pointer
from trunkline.workers.monitor.context_builder import ContextBuilder
from trunkline.workers.monitor.mailbox import TurnMailbox
from trunkline.workers.monitor.model_call import ModelCallConfig
from trunkline.workers.monitor.model_registry import ModelRegistry, SelectedModel
from trunkline.workers.monitor.runner import RunnerDeps, RunnerEnvironment, TurnRunner
from trunkline.workers.monitor.tool_caller import UnattendedToolCaller
from trunkline.workers.monitor.turn import Turn
from trunkline_bus import Bus, BusError, Refusal, background_tasks, key_of, new_id

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.monitor")

LOOPBACK = "127.0.0.1"

STATUS = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.ENGINE_UNAVAILABLE: 503,
    ErrorCode.INTERNAL: 500,
}

BLOCK_FIELD: Field = ("metadata", "client_context", "block")
"""The field of a request that names its block."""


class EngineMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as ``POST /engine/chat`` takes it."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class EngineMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a request; only ``correlation_id`` is required."""

    correlation_id: str
    conversation_id: str | None = None
    trigger: str = "message"
    client_context: dict[str, Any] = {}


class EngineRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request body."""

    messages: tuple[EngineMessage, ...]
    metadata: EngineMetadata


class Caller(msgspec.Struct, frozen=True):
    """The person or program that a request acts for, and the scopes that limit its calls."""

    actor: str
    permissions: tuple[str, ...]


class EngineServer:
    """Serves the loop on a loopback port, to clients that ``http_auth`` authenticates."""

    def __init__(
        self,
        settings: MonitorSettings,
        default_block: str,
        models: ModelRegistry,
        call_config: ModelCallConfig,
        builder: ContextBuilder,
        bus: Bus,
        http_auth: Callable[[], HttpAuth],
        access: BlockAccess,
    ) -> None:
        self._settings = settings
        self._default_block = default_block
        self._models = models
        self._call_config = call_config
        self._builder = builder
        self._bus = bus
        self._http_auth = http_auth
        self._access = access
        self._socket: socket.socket | None = None

    @property
    def url(self) -> str:
        """The address, such as ``http://127.0.0.1:8422``; "" before ``open()`` and when ``monitor.engine`` is
        off."""
        return "" if self._socket is None else "http://{}:{}".format(*self._socket.getsockname())

    def open(self) -> None:
        """Bind the port if ``monitor.engine`` is set. Raises TrunklineError when the port is not
        available."""
        if not self._settings.engine:
            return
        self._socket = _listening_socket(self._settings.engine_port)
        log.info("agent loop on %s/engine/chat", self.url)

    def close(self) -> None:
        """Close the port."""
        if self._socket is not None:
            self._socket.close()

    async def run(self) -> None:
        """Serve until cancelled; return at once without a port."""
        if self._socket is None:
            return
        auth = self._http_auth()
        async with background_tasks() as tasks:
            tasks.start_soon(auth.run)
            await serve_app(self._app(auth), self._socket)

    def _app(self, auth: HttpAuth) -> "Starlette":
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.routing import Route

        from trunkline.runtime.http.auth_middleware import AuthMiddleware

        gate = Middleware(AuthMiddleware, auth=auth, refuse=_refusal, tracer=tracer, host=LOOPBACK)
        return Starlette(routes=[Route("/engine/chat", self._chat, methods=["POST"])], middleware=[gate])

    async def _chat(self, request: "Request") -> "Response":
        from starlette.responses import StreamingResponse

        from trunkline.runtime.http.auth_middleware import IDENTITY

        actors, given = (request.headers.getlist(name) for name in ("x-actor-id", "x-actor-permissions"))
        if len(actors) != 1 or not actors[0] or len(given) != 1:
            return _refused(ErrorCode.UNAUTHORIZED)
        identity: Identity = request.scope[IDENTITY]
        if not identity.may(TokenScope.CHAT) or not _may_act_for(identity, actors[0]):
            return _refused(ErrorCode.FORBIDDEN)
        try:
            body = msgspec.json.decode(await request.body(), type=EngineRequest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            log.info("engine request refused: %s", error)
            return _malformed_body(error)
        if not body.messages:
            return _invalid_field(("messages",), "There is no message.")
        messages = tuple(map(_message, body.messages))
        if (number := first_orphan_result(messages)) is not None:
            return _invalid_field(("messages", number, "tool_call_id"), ORPHAN_RESULT_TEXT)
        if not body.metadata.correlation_id:
            return _invalid_field(("metadata", "correlation_id"), "It must not be empty.")
        block = body.metadata.client_context.get("block", self._default_block)
        refused = await self._access_refusal(block, identity) or await self._block_refusal(
            block, is_owner=is_home_owner(identity)
        )
        if refused is not None:
            return refused
        caller = Caller(actors[0], _permissions(identity, block, given[0]))
        events = self._events(_request(body, messages, block, caller), body.metadata.correlation_id)
        return StreamingResponse(events, media_type="text/event-stream")

    async def _access_refusal(self, block: object, identity: Identity) -> "Response | None":
        """Return the same refusal as the gateway for a block in which the caller may not chat; None otherwise. A block
        that the caller may not read does not exist."""
        if not isinstance(block, str):
            return None
        try:
            rights = await self._access.rights_of(identity)
            rights.require(TokenScope.CHAT, block)
        except Refusal as error:
            if error.code == ErrorCode.NOT_FOUND:
                return _invalid_field(BLOCK_FIELD, block_not_found(block), ErrorCode.NOT_FOUND)
            return _refused(ErrorCode(error.code))
        return None

    async def _block_refusal(self, block: object, *, is_owner: bool) -> "Response | None":
        """Return the same refusal as the gateway for a block that takes no messages; None for a block that does.

        The default block counts as existing before its file is created. Only the owner receives the name of an
        unreadable file.
        """
        if not isinstance(block, str):
            return _invalid_field(BLOCK_FIELD, "It must be the name of a block.")
        try:
            profile = await self._builder.profile(block) if is_block_name(block) else None
        except BusError as error:
            log.error("the block %s cannot be looked up: %s", block, error)
            return _refused(ErrorCode.ENGINE_UNAVAILABLE)
        if profile is None or not (profile.exists or block == self._default_block):
            return _invalid_field(BLOCK_FIELD, block_not_found(block), ErrorCode.NOT_FOUND)
        why = unavailable_reason(block, profile.block, profile.problem)
        return _refused(ErrorCode.CONFLICT, reason=why if is_owner else "") if why else None

    async def _events(self, request: TurnRequested, correlation: str) -> AsyncIterator[bytes]:
        send, receive = anyio.create_memory_object_stream[FeedEvent](1000)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_safely, request, correlation, _CallerSink(send.send))
            async with receive:
                async for event in receive:
                    for line in _sse_events(event):
                        yield line
                    if isinstance(event, TurnEnded):
                        break
            tasks.cancel_scope.cancel()

    async def _run_safely(self, request: TurnRequested, correlation: str, sink: "_CallerSink") -> None:
        """Run the loop; after any failure it ends with an error event."""
        try:
            await self._run(request, sink)
        except (BusError, BaseExceptionGroup) as error:
            log.exception("engine request %s failed", correlation, exc_info=error)
            await sink.emit(TurnEnded(reason="error", code=ErrorCode.TOOL_ERROR))

    async def _run(self, request: TurnRequested, sink: "_CallerSink") -> None:
        async def nowhere(*_: object) -> None:
            return None

        context = await self._builder.build(request, [])
        try:
            choice: SelectedModel | ModelError = self._models.choose(context.preferred_model)
        except ModelError as error:
            choice = error
        deps = RunnerDeps(
            models=self._models,
            tool_caller=UnattendedToolCaller(self._bus, self._settings.tool_idle_timeout),
            call_config=self._call_config,
            text_flush_seconds=self._settings.text_flush_seconds,
            max_calls=self._settings.max_tool_calls,
        )
        environment = RunnerEnvironment(
            record=nowhere,
            store=nowhere,
            settle=nowhere,
            stop=lambda turn: None,
            approval_timeout=0.0,
        )
        mailbox = TurnMailbox(request.turn)
        runner = TurnRunner(Turn(), context, choice, sink, deps, environment, mailbox, JournalTranslator())
        parallel = self._settings.parallel_tool_calls
        await runner.run([TurnStarted(request=request, model="", context=(), parallel=parallel)])


class _CallerSink:
    """Sends events to the caller alone."""

    def __init__(self, send: Callable[[FeedEvent], Awaitable[None]]) -> None:
        self._send = send

    async def emit(self, *events: FeedEvent) -> None:
        """Send the events."""
        for event in events:
            await self._send(event)

    async def emit_journaled(self, *events: NumberedEvent) -> None:
        """Send the events."""
        await self.emit(*(one.event for one in events))


def _may_act_for(identity: Identity, actor: str) -> bool:
    """Report whether the credential allows this caller: the token's holder may act for any caller, any other identity
    only for itself."""
    return actor == identity.id or is_home_owner(identity)


def _permissions(identity: Identity, block: str, permissions: str) -> tuple[str, ...]:
    """Return the permissions of the header, as far as the credential has them."""
    given = ActorPermissions.parse(permissions).scopes
    return ActorPermissions(identity.permissions_in(block)).intersect(given)


def _message(message: EngineMessage) -> Message:
    return Message(
        id=new_id("msg"),
        role=message.role,
        content=message.content,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
    )


def _request(body: EngineRequest, messages: tuple[Message, ...], block: str, caller: Caller) -> TurnRequested:
    """Return the turn's request. Its conversation id is derived from the caller and never from the id that the caller
    sends, so grants of a gateway conversation do not apply."""
    return TurnRequested(
        turn=new_id("turn"),
        block=block,
        conversation=f"engine_{key_of(caller.actor, body.metadata.conversation_id or body.metadata.correlation_id)}",
        message=messages[-1],
        history=messages[:-1],
        actor=caller.actor,
        permissions=caller.permissions,
        channel="engine",
    )


def _sse_events(event: FeedEvent) -> list[bytes]:
    match event:
        case TextDelta(text=text):
            return [_sse_event("text-delta", {"content": text})]
        case ToolStarted(call=call):
            return [_sse_event("tool-call", {"id": call.id, "name": call.name, "arguments": call.arguments})]
        case ToolEnded(call_id=id, output=output, error=error):
            return [_sse_event("tool-result", {"id": id, "error" if error else "output": output})]
        case TurnEnded(code=code) if code is not None:
            known = code in (ErrorCode.PROVIDER_ERROR, ErrorCode.TOOL_ERROR, ErrorCode.CONTEXT_OVERFLOW)
            safe = code if known else ErrorCode.PROVIDER_ERROR
            return [_sse_event("error", {"code": safe, "message": FIXED_SENTENCES[safe]})]
        case TurnEnded(reason=reason, usage=usage):
            tokens = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
            return [_sse_event("done", {"finish_reason": reason, "usage": tokens})]
        case _:
            return []


def _sse_event(event: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))


def _malformed_body(error: Exception) -> "Response":
    """Return the refusal of a body that cannot be decoded, with the invalid field."""
    match error:
        case msgspec.ValidationError():
            return _invalid_field(*field_and_reason(str(error)))
        case RecursionError():
            return _invalid_field((), "Too many lists and objects within each other.")
        case _:
            return _invalid_field((), "It is not JSON.")


def _invalid_field(field: Field, reason: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> "Response":
    return _refused(code, reason=reason, field=json_pointer(field))


def _refusal(code: ErrorCode, path: str, why: str) -> "Response":
    """Return the response to a request that reaches no handler. No proxy is meant to be in front of this server, so it
    gives no advice about one.
    """
    return _refused(code)


def _refused(code: ErrorCode, *, reason: str = "", field: str = "") -> "Response":
    """Return the code with its fixed sentence; ``metadata`` contains reason and field, as at the gateway."""
    from starlette.responses import Response

    body: dict[str, Any] = {"code": code, "message": FIXED_SENTENCES[code]}
    if reason:
        body["metadata"] = {"reason": reason, **({"field": field} if field else {})}
    headers = {"www-authenticate": "Bearer"} if code is ErrorCode.UNAUTHORIZED else None
    return Response(msgspec.json.encode(body), STATUS[code], headers=headers, media_type="application/json")


def _listening_socket(port: int) -> socket.socket:
    """Return a listening socket on the loopback port.

    The server never falls back to another port: a client configured with this port would send its token to the process
    that listens there. The socket names its protocol, because otherwise asyncio does not set TCP_NODELAY.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise TrunklineError(
            f"The agent loop cannot listen on {LOOPBACK}:{port}: {why}.",
            hint="Set monitor.engine_port to another one (0 takes any free one), or monitor.engine to false.",
        ) from error
    return listening
