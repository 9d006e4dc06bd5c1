"""One socket: reads the client's envelopes one after the other, and sends what its subscriptions yield.

There is no queue of messages to the client. Each subscription reads a shared log at the client's speed, so a client
that does not read costs nothing but its place in the log, and delays nobody.
"""

import logging
from contextlib import suppress

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from opentelemetry import trace
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from trunkline.contracts.gateway.access import is_home_owner
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.errors import refusal, to_refusal
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.socket.alerts import SocketAlerts
from trunkline.workers.gateway.socket.client_envelopes import ClientMessage, Ping, Subscribe, Unsubscribe
from trunkline.workers.gateway.socket.codec import (
    decode_envelope,
    encode_envelope,
    error_envelope,
    id_of,
    now,
)
from trunkline.workers.gateway.socket.commands import run_command
from trunkline.workers.gateway.socket.platform_feed import PlatformEntry
from trunkline.workers.gateway.socket.registry import SocketRegistry
from trunkline.workers.gateway.socket.server_envelopes import (
    AckEnvelope,
    AckPayload,
    PongEnvelope,
    PongPayload,
    ServerMessage,
)
from trunkline.workers.gateway.socket.subscription import SocketSubscription
from trunkline.workers.gateway.socket.turn_cursor import TurnCursors
from trunkline_bus import Refusal, new_id, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.gateway")

MAX_SUBSCRIPTIONS = 64
"""The largest number of subscriptions of one socket."""

TOO_BIG = 1009
CLOSE_SECONDS = 1.0
"""Seconds that a client which does not read may delay the end of its socket."""


class Connection:
    """One client. ``max_message`` is the largest number of characters of its messages."""

    def __init__(self, socket: WebSocket, registry: SocketRegistry, sender: Sender, max_message: int) -> None:
        self.sender = sender
        self._socket = socket
        self._registry = registry
        self._max_message = max_message
        self._subscriptions: dict[str, SocketSubscription] = {}
        self._cursors = TurnCursors()
        self._alerts: SocketAlerts | None = None
        self._code: int | None = None
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Serve the client until it disconnects or ``end`` is called."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                if self._code is None:
                    await self._receive(tasks)
            finally:
                self._tasks = None  # nothing more is sent but the end
                tasks.cancel_scope.cancel()
        if self._code is not None and self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(WebSocketDisconnect), anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._socket.close(self._code)

    def end(self, code: int) -> None:
        """Close the socket with this code."""
        self._code = code
        self._cancel()

    def alert(self, number: int, entry: PlatformEntry) -> None:
        """Send an alert, if the socket has subscribed to anything, without waiting for the client."""
        if self._alerts is not None and self._tasks is not None:
            self._alerts.add(number, entry, self._tasks)

    def _cancel(self) -> None:
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    async def _receive(self, tasks: TaskGroup) -> None:
        while True:
            received = await self._socket.receive()
            if received["type"] == "websocket.disconnect":
                return
            text = received.get("text")
            message = received["bytes"] if text is None else text
            if len(message) > self._max_message:
                self._code = TOO_BIG
                return
            await self._answer(message, tasks)

    async def _answer(self, message: str | bytes, tasks: TaskGroup) -> None:
        try:
            envelope = decode_envelope(message)
        except Refusal as error:
            return await self._send_error(error, id_of(message))
        try:
            await self._handle(envelope, tasks)
        except Exception as error:
            await self._send_error(error, envelope.id)

    async def _handle(self, envelope: ClientMessage, tasks: TaskGroup) -> None:
        match envelope:
            case Ping():
                pong = PongPayload(reply_to=envelope.id)
                await self._send(PongEnvelope(id=new_id("env"), timestamp=now(), payload=pong))
            case Subscribe():
                await self._subscribe(envelope, tasks)
            case Unsubscribe(payload=payload):
                subscription = self._subscriptions.pop(payload.subscription, None)
                if subscription is None:
                    raise refusal(ErrorCode.NOT_FOUND, "There is no such subscription.")
                subscription.scope.cancel()
                await self._acknowledge(AckPayload(reply_to=envelope.id))
            case _:
                with start_span(tracer, f"ws {type(envelope).__name__}", kind=trace.SpanKind.SERVER):
                    done = await run_command(self._registry.services, self.sender, envelope)
                await self._acknowledge(done)

    async def _subscribe(self, command: Subscribe, tasks: TaskGroup) -> None:
        if command.id in self._subscriptions:
            raise refusal(ErrorCode.CONFLICT, "There is a subscription with this id.")
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise refusal(ErrorCode.RATE_LIMITED, f"A socket has {MAX_SUBSCRIPTIONS} subscriptions at most.")
        subscription = SocketSubscription(
            self._registry, self.sender, command, self._cursors, self._send_text
        )
        await subscription.prepare()
        self._subscriptions[command.id] = subscription
        await self._acknowledge(AckPayload(reply_to=command.id))
        tasks.start_soon(self._run_subscription, subscription)
        if self._alerts is None:
            self._alerts = SocketAlerts(self._registry, self.sender, self._watched_blocks, self._send_text)
            tasks.start_soon(self._alerts.begin)

    def _watched_blocks(self) -> set[str]:
        return {subscription.block for subscription in self._subscriptions.values()}

    async def _run_subscription(self, subscription: SocketSubscription) -> None:
        with subscription.scope:
            try:
                await subscription.run()
            except Exception as error:
                await self._send_error(error, subscription.id, subscription=subscription.id)
        if self._subscriptions.get(subscription.id) is subscription:
            del self._subscriptions[subscription.id]

    async def _acknowledge(self, payload: AckPayload) -> None:
        await self._send(AckEnvelope(id=new_id("env"), timestamp=now(), payload=payload))

    async def _send_error(
        self, error: Exception, reply_to: str | None, *, subscription: str | None = None
    ) -> None:
        reference = new_id("err")
        refused = to_refusal(error, reference)
        log.info("refused over a socket (%s): %s: %.400r", reference, refused.code, refused.message)
        await self._send(
            error_envelope(
                refused,
                reply_to=reply_to,
                correlation_id=reference,
                subscription=subscription,
                why=self._reason(refused),
            )
        )

    def _reason(self, error: Refusal) -> str:
        """Return why a request conflicts with the present state. The owner alone learns it, as over HTTP."""
        told = error.code == ErrorCode.CONFLICT and is_home_owner(self.sender.identity)
        return error.message if told and error.message != FIXED_SENTENCES[ErrorCode.CONFLICT] else ""

    async def _send(self, envelope: ServerMessage) -> None:
        await self._send_text(encode_envelope(envelope))

    async def _send_text(self, text: str) -> None:
        """Send a message once the client has room for it. Does not return if the client has gone."""
        try:
            await anyio.lowlevel.checkpoint()  # a subscription with much to send delays no other task
            await self._socket.send_text(text)
        except WebSocketDisconnect:
            self._cancel()
            await anyio.sleep_forever()  # cancelled
