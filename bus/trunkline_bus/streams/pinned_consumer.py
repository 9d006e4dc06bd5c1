"""The pull loop of a durable consumer that is pinned to one connected client at a time. Continues after failures.

Pulling renews a pin, so a background task pulls whether or not the program takes messages. ``max_ack_pending`` of the
consumer limits the number of messages that wait here. Waiting messages are not redelivered. A lost pin does not stop
the program's running work: protect writes with ``append(expect=…)``, because an ack does not protect them.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from nats.aio.msg import Msg

from trunkline_bus.async_iterator import StepIterator
from trunkline_bus.backoff import Backoff
from trunkline_bus.connection.inbound_pipeline import InboundPipeline
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.endpoint import Topic
from trunkline_bus.envelope import Envelope
from trunkline_bus.errors import BusError
from trunkline_bus.messages import StoredMessage
from trunkline_bus.streams.delivery_info import DeliveryInfo, delivery_info
from trunkline_bus.streams.jetstream_protocol import nanoseconds
from trunkline_bus.streams.pull_requests import PullEnd, PullRequester
from trunkline_bus.streams.specs import ConsumerSpec
from trunkline_bus.streams.topology import apply_spec
from trunkline_bus.task_group import background_tasks

_log = logging.getLogger(__name__)

T = TypeVar("T")
_PIN = "Nats-Pin-Id"
_UNPINNED_EXPIRES = 10.0
_RETRY_AFTER_FAILURE = 5.0
_COURTESY = 0.5
"""Seconds that a client without the pin waits after the server was away. The server gives the pin to the first client
that asks then.
"""


@dataclass(frozen=True, slots=True)
class Delivery(StoredMessage[T]):
    """A message that the receiver settles by ``ack``, ``nak`` or ``term``. An unsettled message is redelivered after
    ``ack_wait``.

    ``pin`` is the id of the pin under which the message was delivered ("" without a pin). ``redelivered`` is True if
    the message was delivered before.

    Guarantees: a message is delivered at least once.

    Not guaranteed: that the server receives the settlement. If it does not, the message is redelivered.
    """

    pin: str
    redelivered: bool
    _link: NatsConnection = field(repr=False, compare=False)
    _reply: str = field(repr=False, compare=False)

    async def ack(self, *, confirm: bool = False) -> None:
        """Acknowledge the message: the server does not redeliver it.

        With ``confirm`` the call waits until the server has the acknowledgement. nats-server writes acknowledgements to
        disk a little later, so after a kill -9 of the server an acknowledged message may be redelivered, with
        ``confirm`` too.

        Raises ``ConnectionFailed`` if the server cannot be reached, and with ``confirm`` ``CallError`` if it does not
        answer.
        """
        if confirm:
            await self._link.request(self._reply, b"+ACK", timeout=5.0)
        else:
            await self._link.publish(self._reply, b"+ACK")

    async def nak(self, delay: float | None = None) -> None:
        """Ask for redelivery of the message, after ``delay`` seconds if given. Raises ``ConnectionFailed`` as ``ack``
        does.
        """
        await self._link.publish(self._reply, _nak(delay))

    async def in_progress(self) -> None:
        """Restart the ``ack_wait``, because the message is still being processed. Raises ``ConnectionFailed`` as
        ``ack`` does.
        """
        await self._link.publish(self._reply, b"+WPI")

    async def term(self, reason: str = "") -> None:
        """Settle the message without success: the server does not redeliver it. Raises ``ConnectionFailed`` as ``ack``
        does.
        """
        await self._link.publish(self._reply, f"+TERM {reason}".strip().encode())


@asynccontextmanager
async def deliveries(
    link: NatsConnection, inbound: InboundPipeline, consumer: ConsumerSpec, topic: Topic[T]
) -> AsyncIterator[AsyncIterator[Delivery[T]]]:
    """See ``Bus.pinned``."""
    loop = _PullLoop(link, inbound, consumer, topic)
    try:
        async with background_tasks() as group:
            group.start_soon(loop.pull_forever)
            group.start_soon(loop.extend_ack_wait)
            yield StepIterator(loop.next)
    finally:
        with anyio.CancelScope(shield=True):
            await loop.hand_back()


class _PullLoop(Generic[T]):
    def __init__(
        self, link: NatsConnection, inbound: InboundPipeline, spec: ConsumerSpec, topic: Topic[T]
    ) -> None:
        self._link = link
        self._inbound = inbound
        self._spec = spec
        self._topic = topic
        self._waiting: deque[Msg] = deque()
        self._arrived = anyio.Event()
        self._pin = ""
        self._puller = PullRequester(link, spec.stream, spec.name)

    async def pull_forever(self) -> None:
        """Pull, and continue after every failure."""
        backoff = Backoff(0.05, 1.0)
        while True:
            try:
                end = await self._pull()
                if end is PullEnd.GONE:
                    await apply_spec(self._link, self._spec)
            except BusError as error:
                if self._link.closed:
                    raise
                _log.warning("cannot pull from %s/%s: %s", self._spec.stream, self._spec.name, error)
                end = PullEnd.GONE
            if end is PullEnd.PIN_LOST:
                self._pin = ""
            if end in (PullEnd.GONE, PullEnd.BROKEN):
                await anyio.sleep(max(backoff.advance(), 0.0 if self._pin else _COURTESY))
            else:
                backoff.reset()

    async def _pull(self) -> PullEnd:
        spec = self._spec
        extra: dict[str, Any] = {}
        if spec.pinned_group is not None:
            extra["group"] = spec.pinned_group
            if self._pin:
                extra["id"] = self._pin
        expires = spec.pin_timeout / 3 if spec.pinned_group is not None else _UNPINNED_EXPIRES
        await self._puller.start(batch=spec.batch, expires=expires, extra=extra)
        while (msg := await self._puller.next()) is not None:
            self._pin = (msg.headers or {}).get(_PIN, self._pin)
            self._waiting.append(msg)
            self._arrived.set()
        return self._puller.end

    async def extend_ack_wait(self) -> None:
        """Keep the waiting messages from being redelivered."""
        while True:
            await anyio.sleep(max(0.05, self._spec.ack_wait / 3))
            for msg in list(self._waiting):
                await self._link.publish(msg.reply, b"+WPI")

    async def next(self) -> Delivery[T]:
        """Return the next delivery that can be decoded. A cancelled call puts its message back."""
        while True:
            while not self._waiting:
                self._arrived = anyio.Event()
                await self._arrived.wait()
            msg = self._waiting.popleft()
            try:
                delivery = await self._opened(msg)
            except BaseException:
                self._waiting.appendleft(msg)
                raise
            if delivery is not None:
                return delivery

    async def _opened(self, msg: Msg) -> Delivery[T] | None:
        parsed = await self._inbound.parse(
            self._topic.stored_subject, self._topic.payload, msg.subject, msg.data, msg.headers
        )
        if parsed is None:
            await self._link.publish(msg.reply, b"+TERM unreadable")
            return None
        passed: list[Delivery[T]] = []

        async def last(subject: str, envelope: Envelope[T]) -> None:
            passed.append(self._delivery(msg, subject, parsed[0], envelope))

        try:
            await self._inbound.handle(msg.subject, parsed[1], msg.headers, last)
        except Exception:  # a middleware that fails must not end the loop
            _log.exception("a bus middleware failed on %s; it will be tried again", msg.subject)
            await self._link.publish(msg.reply, _nak(_RETRY_AFTER_FAILURE))
            return None
        if not passed:
            await self._link.publish(msg.reply, b"+TERM withheld by a middleware")
        return passed[-1] if passed else None

    def _delivery(self, msg: Msg, subject: str, keys: dict[str, str], envelope: Envelope[T]) -> Delivery[T]:
        info: DeliveryInfo = delivery_info(msg.reply)
        pin = (msg.headers or {}).get(_PIN, "")
        return Delivery(
            info.seq, subject, keys, info.time, envelope, pin, info.delivered > 1, self._link, msg.reply
        )

    async def hand_back(self) -> None:
        """Release the pin and return the waiting messages, so that the next client gets them at once."""
        await self._puller.close()
        if not self._link.connected:
            return
        spec = self._spec
        if self._pin:
            body = msgspec.json.encode({"group": spec.pinned_group})
            await self._link.publish(f"$JS.API.CONSUMER.UNPIN.{spec.stream}.{spec.name}", body)
        for msg in self._waiting:
            await self._link.publish(msg.reply, b"-NAK")
        await self._link.flush(timeout=1.0)


def _nak(delay: float | None) -> bytes:
    return b"-NAK" if delay is None else b"-NAK " + msgspec.json.encode({"delay": nanoseconds(delay)})
