"""Services with endpoints that answer requests. They implement the NATS service protocol (ADR-32).

The standard tools (``nats micro ls``, ``info``, ``stats``) list every service. ``calls.py`` sends the requests.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from nats.aio.msg import Msg
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from trunkline_bus.connection.inbound_pipeline import InboundPipeline
from trunkline_bus.connection.nats_connection import STATUS, NatsConnection
from trunkline_bus.connection.outbound_pipeline import NO_SCOPE, OutboundPipeline
from trunkline_bus.connection.subscription import JobLimiter, Subscription, drain_all, stop_all
from trunkline_bus.endpoint import Endpoint
from trunkline_bus.envelope import Envelope, Scope
from trunkline_bus.errors import BusError, DecodeError, Refusal, SubjectError
from trunkline_bus.heartbeat import Heartbeat
from trunkline_bus.ids import new_id
from trunkline_bus.messages import FaultReply
from trunkline_bus.services.calls import ERROR, ERROR_CODE, IDLE, INDEX, PHASE, STOP
from trunkline_bus.trace import UnrecordedSpan, record_failure, remote_parent, start_span

_log = logging.getLogger(__name__)
_tracer = trace.get_tracer("trunkline_bus")

Req = TypeVar("Req")
Rep = TypeVar("Rep")


@dataclass(frozen=True, slots=True)
class Request(Generic[Req]):
    """The argument of a handler: the envelope of the payload, the subject and the keys of the subject."""

    envelope: Envelope[Req]
    keys: dict[str, str]
    subject: str

    @property
    def data(self) -> Req:
        """The payload."""
        return self.envelope.data


class _OnBus(Protocol):
    name: str
    link: NatsConnection
    group: TaskGroup
    inbound: InboundPipeline
    outbound: OutboundPipeline


@asynccontextmanager
async def service(
    bus: _OnBus, *, name: str, version: str, queue: str | None = None, description: str = ""
) -> AsyncIterator["Service"]:
    """Run a service while the block runs. At the end of the block the running requests are finished.

    ``queue`` (by default ``name``) is the queue group; each request goes to one member of the group. ``version`` has
    the form ``1.2.3``.
    """
    running = Service(bus, name, version, queue or name, description)
    try:
        await running.serve_discovery()
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            await running.close()


class Service:
    """A named set of endpoints, made by ``service``."""

    def __init__(self, bus: _OnBus, name: str, version: str, queue: str, description: str) -> None:
        self.name = name
        self.version = version
        self.id = new_id()
        self._bus = bus
        self._queue = queue
        self._description = description
        self._started = datetime.now(UTC)
        self._endpoints: list[_ServedEndpoint[Any, Any]] = []
        self._subscriptions: list[Subscription] = []
        self._confirms_each = True

    async def add(
        self,
        endpoint: Endpoint[Req, Rep],
        handler: Callable[[Request[Req]], Awaitable[Rep]] | Callable[[Request[Req]], AsyncIterator[Rep]],
        *,
        limit: int = 64,
        queue: str | None = None,
        **keys: str,
    ) -> None:
        """Answer ``endpoint`` with ``handler``, at most ``limit`` requests at once. A missing key matches any value.

        The handler of a streaming endpoint is an async generator. A ``Refusal`` becomes a fault with its code and
        message. Any other exception becomes a fault ``internal`` with a reference number; the details are logged.
        """
        subject = endpoint.subject.wildcard_filter(**keys)
        served = _ServedEndpoint(self._bus, endpoint, handler, subject, queue or self._queue)
        self._endpoints.append(served)
        await self._subscribe(subject, served.answer, limit, served.queue)

    @asynccontextmanager
    async def confirm_together(self) -> AsyncIterator[None]:
        """Let ``add`` return before the server has the endpoint. The server has all endpoints when the block ends.

        The block needs one round trip instead of one for each endpoint. A worker adds a hundred endpoints at its start.
        A block inside of another leaves the round trip to the outer one.
        """
        is_outermost, self._confirms_each = self._confirms_each, False
        try:
            yield
        finally:
            self._confirms_each = is_outermost
        if is_outermost:
            await self._bus.link.confirm_subscriptions()

    async def serve_discovery(self) -> None:
        """Answer discovery requests on ``$SRV.PING``, ``INFO`` and ``STATS``."""
        async with self.confirm_together():
            for verb, reply in (("PING", self._ping), ("INFO", self._info), ("STATS", self._stats)):
                for tail in ("", f".{self.name}", f".{self.name}.{self.id}"):
                    await self._subscribe(f"$SRV.{verb}{tail}", self._discovery(reply), 8, "")

    async def stop(self) -> None:
        """Stop listening: new requests go to other members of the queue group. Running requests continue."""
        await stop_all(self._subscriptions)

    async def close(self) -> None:
        """Stop listening, then finish the running requests."""
        await drain_all(self._subscriptions)
        self._subscriptions.clear()

    async def _subscribe(
        self, subject: str, job: Callable[[Msg], Awaitable[None]], limit: int, queue: str
    ) -> None:
        gate = JobLimiter(self._bus.group, limit)

        async def deliver(msg: Msg) -> None:
            await gate.start(job, msg)

        link = self._bus.link
        raw = await link.subscribe(
            subject, deliver, queue=queue, on_slow=lambda: None, confirm=self._confirms_each
        )
        self._subscriptions.append(Subscription(link, raw, gate, lambda _: None))

    def _discovery(self, reply: Callable[[], dict[str, Any]]) -> Callable[[Msg], Awaitable[None]]:
        async def answer(msg: Msg) -> None:
            if msg.reply:
                await self._bus.link.publish(msg.reply, msgspec.json.encode(reply()))

        return answer

    def _identity(self, kind: str) -> dict[str, Any]:
        return {
            "type": f"io.nats.micro.v1.{kind}_response",
            "name": self.name,
            "id": self.id,
            "version": self.version,
            "metadata": {},
        }

    def _ping(self) -> dict[str, Any]:
        return self._identity("ping")

    def _info(self) -> dict[str, Any]:
        endpoints = [served.described() for served in self._endpoints]
        return {**self._identity("info"), "description": self._description, "endpoints": endpoints}

    def _stats(self) -> dict[str, Any]:
        started = self._started.isoformat().replace("+00:00", "Z")
        endpoints = [served.measured() for served in self._endpoints]
        return {**self._identity("stats"), "started": started, "endpoints": endpoints}


class _ServedEndpoint(Generic[Req, Rep]):
    """An endpoint with its handler and its statistics."""

    def __init__(
        self, bus: _OnBus, endpoint: Endpoint[Req, Rep], handler: Callable[..., Any], subject: str, queue: str
    ) -> None:
        self.queue = queue
        self._bus = bus
        self._endpoint = endpoint
        self._handler = handler
        self._subject = subject
        self._requests = 0
        self._errors = 0
        self._last_error = ""
        self._nanos = 0

    def described(self) -> dict[str, Any]:
        return {
            "name": self._endpoint.name.replace(".", "-"),
            "subject": self._subject,
            "queue_group": self.queue,
            "metadata": {"doc": self._endpoint.doc} if self._endpoint.doc else {},
        }

    def measured(self) -> dict[str, Any]:
        return {
            "name": self._endpoint.name.replace(".", "-"),
            "subject": self._subject,
            "queue_group": self.queue,
            "num_requests": self._requests,
            "num_errors": self._errors,
            "last_error": self._last_error,
            "processing_time": self._nanos,
            "average_processing_time": self._nanos // max(1, self._requests),
        }

    async def answer(self, msg: Msg) -> None:
        """Answer one request. Never raises."""
        started = time.perf_counter_ns()
        self._requests += 1
        try:
            await self._answer(msg)
        except BusError as error:  # the reply could not be sent
            _log.error("cannot answer %s: %s", msg.subject, error)
        finally:
            self._nanos += time.perf_counter_ns() - started

    async def _answer(self, msg: Msg) -> None:
        inbound = self._bus.inbound
        try:
            keys = self._endpoint.subject.parse(msg.subject)
            envelope = await inbound.open(self._endpoint.request, msg.data, msg.headers)
        except (DecodeError, SubjectError) as error:
            reason = error.reason if isinstance(error, DecodeError) else "bad_subject"
            await inbound.send_to_dead_letters(msg.subject, reason, str(error), msg.data)
            message = f"the request to {self._endpoint.name} cannot be read ({reason})"
            await self._fault(msg, NO_SCOPE, FaultReply(code="bad_request", message=message))
            return

        async def last(subject: str, opened: Envelope[Req]) -> None:
            with _span(self._bus.name, self._endpoint, opened, subject) as span:
                await self._guarded(msg, Request(opened, keys, subject), span)

        try:
            await inbound.handle(msg.subject, envelope, msg.headers, last)
        except BusError:
            raise
        except Exception as error:  # a middleware failed
            await self._fault(msg, envelope.reply_scope(), _internal(msg.subject, error))

    async def _guarded(self, msg: Msg, request: Request[Req], span: trace.Span) -> None:
        scope = request.envelope.reply_scope()
        try:
            if self._endpoint.streaming:
                await _StreamingReply(self._bus, msg, scope).run(self._handler(request))
            else:
                await self._send(msg, scope, await self._handler(request), {})
        except Refusal as refusal:
            span.set_attribute("error.type", refusal.code)
            await self._fault(msg, scope, FaultReply(code=refusal.code, message=refusal.message))
        except Exception as error:
            record_failure(span, error)
            await self._fault(msg, scope, _internal(msg.subject, error))

    async def _send(self, msg: Msg, scope: Scope, payload: Any, headers: dict[str, str]) -> None:
        await _reply(self._bus, msg, scope, payload, headers)

    async def _fault(self, msg: Msg, scope: Scope, fault: FaultReply) -> None:
        self._errors += 1
        self._last_error = f"{fault.code}:{fault.message}"
        await self._send(msg, scope, fault, {ERROR: fault.message, ERROR_CODE: fault.code})


class _StreamingReply:
    """The service's side of a streaming call: it sends items with an index, heartbeats, and an end marker."""

    def __init__(self, bus: _OnBus, msg: Msg, scope: Scope) -> None:
        self._bus = bus
        self._msg = msg
        self._scope = scope
        self._count = 0
        self._idle = _seconds((msg.headers or {}).get(IDLE))
        self._work = anyio.CancelScope()

    async def run(self, items: AsyncIterator[Any]) -> None:
        """Send all items. The handler is cancelled if the caller disconnects."""
        link = self._bus.link
        stop = link.open_inbox(self._stopped)
        try:
            await self._mark("open", {STOP: stop})
            with Heartbeat(self._bus.group, partial(self._show_life, stop), self._idle / 3):
                await self._send_all(items)
            if not self._work.cancelled_caught:
                await self._mark("end", {INDEX: str(self._count)})
        finally:
            link.close_inbox(stop)

    async def _send_all(self, items: Any) -> None:
        with self._work:
            async with aclosing(items):
                async for item in items:
                    await _reply(self._bus, self._msg, self._scope, item, {INDEX: str(self._count)})
                    self._count += 1

    async def _show_life(self, stop: str) -> None:
        """Send a heartbeat to the caller. The server reports if the caller no longer listens."""
        await self._bus.link.publish(self._msg.reply, b"", reply=stop, headers={PHASE: "alive"})

    async def _mark(self, phase: str, headers: dict[str, str]) -> None:
        await self._bus.link.publish(self._msg.reply, b"", headers={PHASE: phase, **headers})

    def _stopped(self, msg: Msg) -> None:
        if not msg.data and (msg.headers or {}).get(STATUS, "503") == "503":
            self._work.cancel()


async def _reply(bus: _OnBus, msg: Msg, scope: Scope, payload: Any, headers: dict[str, str]) -> None:
    async def transmit(subject: str, body: bytes, final: dict[str, str]) -> None:
        await bus.link.publish(subject, body, headers=final)

    if msg.reply:
        await bus.outbound.send(msg.reply, bus.outbound.wrap(payload, scope), headers, transmit)


@contextmanager
def _span(
    client: str, endpoint: Endpoint[Any, Any], envelope: Envelope[Any], subject: str
) -> Iterator[trace.Span]:
    """Return a SERVER span of ``client`` below the caller's span; no span for an untraced endpoint.

    If the endpoint begins no traces (``root=False``), a request outside every trace has a span only if it failed.
    """
    if not endpoint.traced:
        with remote_parent(envelope.traceparent):
            yield trace.INVALID_SPAN
    elif envelope.traceparent is not None or endpoint.root:
        with remote_parent(envelope.traceparent), _recorded(client, endpoint, envelope, subject) as span:
            yield span
    else:
        began, unrecorded = time.time_ns(), UnrecordedSpan()
        yield unrecorded
        if unrecorded.failure is not None:
            with _recorded(client, endpoint, envelope, subject, began) as span:
                span.set_attribute("error.type", unrecorded.failure)
                span.set_status(trace.StatusCode.ERROR, unrecorded.failure)


def _recorded(
    client: str, endpoint: Endpoint[Any, Any], envelope: Envelope[Any], subject: str, began: int | None = None
) -> AbstractContextManager[trace.Span]:
    """Return a recorded span. Its name is the subject template, so that there are few names; the subject is an
    attribute.
    """
    attributes = {
        "messaging.system": "nats",
        "messaging.client.id": client,
        "messaging.operation.type": "process",
        "messaging.destination.name": subject,
        "messaging.destination.template": endpoint.subject.template,
        "messaging.message.id": envelope.id,
    }
    name = f"process {endpoint.subject.template}"
    return start_span(_tracer, name, kind=SpanKind.SERVER, attributes=attributes, began=began)


def _internal(subject: str, error: Exception) -> FaultReply:
    reference = new_id("err")
    _log.error("the service on %s failed (%s)", subject, reference, exc_info=error)
    return FaultReply(
        code="internal", message=f"the service failed; see its log for {reference}", detail=reference
    )


def _seconds(text: str | None) -> float:
    try:
        return max(0.3, float(text or "5"))
    except ValueError:
        return 5.0
