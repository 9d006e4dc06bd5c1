"""Requests with one reply (``call``) or many (``call_streaming``). ``service.py`` answers them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import msgspec
from nats.aio.msg import Msg

from trunkline_bus.async_iterator import StepIterator
from trunkline_bus.backoff import Backoff
from trunkline_bus.connection.inbound_pipeline import InboundPipeline
from trunkline_bus.connection.nats_connection import ConnectionLost, NatsConnection
from trunkline_bus.connection.outbound_pipeline import OutboundPipeline
from trunkline_bus.endpoint import Endpoint
from trunkline_bus.envelope import Scope
from trunkline_bus.errors import (
    BusError,
    CallTimeout,
    ConnectionFailed,
    DecodeError,
    NoResponders,
    RemoteFault,
)
from trunkline_bus.messages import FaultReply
from trunkline_bus.streams.jetstream import ReplyReader

Req = TypeVar("Req")
Rep = TypeVar("Rep")

DEFAULT_TIMEOUT = 1.0
"""Seconds without a reply after which a repeatable request is sent again, because the service that received it may have
ended. The time doubles with each repetition.
"""

ERROR = "Nats-Service-Error"
ERROR_CODE = "Nats-Service-Error-Code"
PHASE = "Trunkline-Phase"
STOP = "Trunkline-Stop"
IDLE = "Trunkline-Idle"
INDEX = "Trunkline-Index"


class EndpointCaller:
    """Calls services over one connection. See ``Bus.call`` and ``Bus.call_streaming``."""

    def __init__(self, link: NatsConnection, outbound: OutboundPipeline, inbound: InboundPipeline) -> None:
        self._link = link
        self._outbound = outbound
        self._inbound = inbound

    async def call(
        self,
        endpoint: Endpoint[Req, Rep],
        request: Req,
        *,
        scope: Scope,
        timeout: float,
        repeatable: bool,
        absent: float | None,
        keys: dict[str, str],
    ) -> Rep:
        """Send a request and return the reply."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        given_up = deadline if absent is None else min(deadline, loop.time() + absent)
        subject = endpoint.subject.format(**keys)

        async def transmit(target: str, body: bytes, headers: dict[str, str]) -> Msg:
            backoff, attempt_timeout = Backoff(0.005, 0.25), DEFAULT_TIMEOUT if repeatable else timeout
            failure: BusError
            while True:
                left = min(deadline - loop.time(), attempt_timeout)
                try:
                    return await self._link.request(
                        target, body, timeout=left, headers=headers, fragile=repeatable
                    )
                except NoResponders as error:
                    failure, last = error, given_up
                except (CallTimeout, ConnectionLost) as error:
                    if not repeatable:
                        raise
                    failure, last = (
                        CallTimeout(f"no reply from {subject} in {timeout:g} s: {error}"),
                        deadline,
                    )
                    failure.__cause__ = error
                    attempt_timeout *= 2  # the service may be slow and still alive
                if loop.time() + backoff.delay >= last:
                    raise failure
                await backoff.sleep()
                if loop.time() >= last:  # a busy process slept longer, and another attempt would have no time
                    raise failure

        try:
            msg = await self._outbound.send(subject, self._outbound.wrap(request, scope), {}, transmit)
        except ConnectionFailed as error:
            raise CallTimeout(f"no reply from {subject} in {timeout:g} s: {error}") from error
        return await _reply(self._inbound, endpoint, msg)

    @asynccontextmanager
    async def call_streaming(
        self,
        endpoint: Endpoint[Req, Rep],
        request: Req,
        *,
        scope: Scope,
        idle_timeout: float,
        keys: dict[str, str],
    ) -> AsyncIterator[AsyncIterator[Rep]]:
        """Send a request and iterate over the replies."""

        async def transmit(target: str, body: bytes, headers: dict[str, str]) -> ReplyReader:
            return ReplyReader(self._link, target, body, {**headers, IDLE: f"{idle_timeout:g}"})

        subject = endpoint.subject.format(**keys)
        envelope = self._outbound.wrap(request, scope)
        async with await self._outbound.send(subject, envelope, {}, transmit) as replies:
            stream = _ReplyStream(self._inbound, endpoint, replies, idle_timeout)
            await stream.begin()
            try:
                yield StepIterator(stream.next)
            finally:
                with anyio.CancelScope(shield=True):
                    await stream.stop(self._link)


class _ReplyStream:
    """The replies of one streaming call."""

    def __init__(
        self,
        inbound: InboundPipeline,
        endpoint: Endpoint[Any, Any],
        replies: ReplyReader,
        idle_timeout: float,
    ) -> None:
        self._inbound = inbound
        self._endpoint = endpoint
        self._replies = replies
        self._idle = idle_timeout
        self._stop_subject: str | None = None
        self._ended = False
        self._count = 0

    async def begin(self) -> None:
        """Wait until a service accepts the request. Raises ``NoResponders``, ``CallTimeout``, ``RemoteFault``."""
        first = await self._replies.next(self._idle)
        headers = first.headers or {}
        if ERROR_CODE in headers:
            raise await _fault(self._inbound, first)
        if headers.get(PHASE) != "open":
            raise BusError(f"endpoint {self._endpoint.name} answered with one reply; use call() for it")
        self._stop_subject = headers.get(STOP)

    async def next(self) -> Any:
        """Return the next reply. The iteration ends at the end marker."""
        while not self._ended:
            msg = await self._replies.next(self._idle)
            headers = msg.headers or {}
            phase = headers.get(PHASE)
            if phase == "alive":
                continue
            self._ended = phase == "end" or ERROR_CODE in headers
            self._check_index(headers.get(INDEX))
            if phase != "end":
                return await _reply(self._inbound, self._endpoint, msg)
        raise StopAsyncIteration

    def _check_index(self, index: str | None) -> None:
        if index is not None and index != str(self._count):
            raise CallTimeout(
                f"a reply of {self._endpoint.name} was lost when a connection broke; repeat the request"
            )
        self._count += 1

    async def stop(self, link: NatsConnection) -> None:
        """Tell the service to stop, unless it has finished."""
        if not self._ended and self._stop_subject is not None and link.connected:
            await link.publish(self._stop_subject, b"")


async def _reply(inbound: InboundPipeline, endpoint: Endpoint[Any, Rep], msg: Msg) -> Rep:
    if msg.headers and ERROR_CODE in msg.headers:
        raise await _fault(inbound, msg)
    envelope = await inbound.open(endpoint.reply, msg.data, msg.headers)
    answers: list[Rep] = []

    async def last(_subject: str, opened: Any) -> None:
        answers.append(opened.data)

    await inbound.handle(msg.subject, envelope, msg.headers, last)
    if not answers:
        raise BusError(f"a bus middleware withheld the reply of {endpoint.name}")
    return answers[-1]


async def _fault(inbound: InboundPipeline, msg: Msg) -> RemoteFault:
    headers = msg.headers or {}
    try:
        fault = (await inbound.open(FaultReply, msg.data, headers)).data
    except (DecodeError, msgspec.MsgspecError):  # not a Trunkline service
        fault = FaultReply(
            code=headers[ERROR_CODE], message=headers.get(ERROR, "the service reported an error")
        )
    return RemoteFault(fault.code, fault.message, fault.detail)
