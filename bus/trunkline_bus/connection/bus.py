"""The bus: one connection, and the operations to publish, call, store and receive over it.

``Bus`` only delegates; each operation is implemented in its own module.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from trunkline_bus.connection import subscription
from trunkline_bus.connection.claim_check import ClaimCheckStore
from trunkline_bus.connection.codec import Codec
from trunkline_bus.connection.inbound_pipeline import InboundPipeline
from trunkline_bus.connection.middleware import BusMiddleware
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.connection.outbound_pipeline import NO_SCOPE, MessageWithheld, OutboundPipeline
from trunkline_bus.connection.settings import BusSettings
from trunkline_bus.connection.subscription import Subscription, drain_all
from trunkline_bus.endpoint import Counter, Endpoint, Topic
from trunkline_bus.envelope import Scope
from trunkline_bus.messages import Ack, Increment, ReceivedMessage, StoredMessage
from trunkline_bus.services.calls import EndpointCaller
from trunkline_bus.streams import counter as counters
from trunkline_bus.streams import pinned_consumer as pinned
from trunkline_bus.streams import typed_stream
from trunkline_bus.streams.jetstream_protocol import StoredRecord
from trunkline_bus.streams.key_value import KeyValue
from trunkline_bus.streams.object_store import ObjectStore
from trunkline_bus.streams.pinned_consumer import Delivery
from trunkline_bus.streams.raw_stream import RawStream
from trunkline_bus.streams.specs import BucketSpec, ConsumerSpec, ObjectStoreSpec
from trunkline_bus.task_group import background_tasks

_log = logging.getLogger(__name__)

T = TypeVar("T")
Req = TypeVar("Req")
Rep = TypeVar("Rep")


class Bus:
    """One connection to NATS, made by ``connect``. After a connection loss it reconnects without limit. No method may
    be called after the end of ``connect``.

    Keyword arguments that have the name of a key of the subject set that key. ``link``, ``group``, ``inbound`` and
    ``outbound`` are for the modules of this package only.

    Guarantees: methods may be called concurrently. A message passes the middleware of this connection on its way out
    and on its way in.

    Not guaranteed: that a message is sent or received while the connection is down.

    Errors: every error is a ``BusError``. Every method that takes a topic or an endpoint raises ``SubjectError`` for a
    key that is not valid, and for a missing key that it needs. A method that waits for the server raises
    ``ConnectionFailed`` if the server stays unreachable.
    """

    def __init__(self, link: NatsConnection, group: TaskGroup, middleware: Sequence[BusMiddleware]) -> None:
        settings = link.settings
        self.name = settings.name
        self.link = link
        self.group = group
        codec = Codec()
        bucket = ObjectStoreSpec(
            name=settings.claims,
            ttl=settings.claim_ttl,
            max_bytes=settings.claim_bytes,
            replicas=settings.claim_replicas,
        )
        store = ObjectStore(link, bucket)
        self._claims = ClaimCheckStore(store, min(settings.claim_threshold, link.max_payload - 4096))
        self.outbound = OutboundPipeline(settings.name, codec, self._claims, middleware)
        self.inbound = InboundPipeline(link, codec, self._claims, self.outbound, middleware)
        self._calls = EndpointCaller(link, self.outbound, self.inbound)
        self._subscriptions: set[Subscription] = set()

    @property
    def connected(self) -> bool:
        """Report whether the connection is open now. Raises nothing."""
        return self.link.connected

    @property
    def server_version(self) -> str:
        """The version of the server of the current or last connection. Raises nothing."""
        return self.link.server_version

    async def publish(self, topic: Topic[T], payload: T, *, scope: Scope = NO_SCOPE, **keys: str) -> None:
        """Publish a message without acknowledgement. While the connection is down the message is buffered; if the
        buffer is full, the call waits. Delivery is not guaranteed. Raises ``ConnectionFailed`` if the buffer stays
        full.
        """
        subject = topic.subject.format(**keys)
        try:
            await self.outbound.send(subject, self.outbound.wrap(payload, scope), {}, self._transmit)
        except MessageWithheld:
            _log.debug("a bus middleware withheld a message to %s", subject)

    async def append(
        self,
        topic: Topic[T],
        payload: T,
        *,
        scope: Scope = NO_SCOPE,
        msg_id: str | None = None,
        expect: int | None = None,
        expect_filter: str | None = None,
        timeout: float = 10.0,
        ttl: float | None = None,
        headers: Mapping[str, str] | None = None,
        **keys: str,
    ) -> Ack:
        """Store a message in the topic's stream, and return the acknowledgement of the stream.

        Until ``timeout`` seconds have passed, the append is repeated with the same message id (``msg_id``, by default
        the envelope's id), also across restarts of the server. The stream stores the message at most once. ``expect``
        is the sequence that the last message of the subject (or of ``expect_filter``, which may have wildcards) must
        have; 0 means that there is no message. The stream deletes the message after ``ttl`` (whole seconds, at least
        1), if the stream allows that.

        Raises ``SequenceConflict``, ``StorageFull``, ``StreamUnavailable``, ``StreamError``, ``ConnectionFailed``.
        """
        return await typed_stream.append(
            self.link,
            self.outbound,
            topic,
            payload,
            scope=scope,
            msg_id=msg_id,
            expect=expect,
            expect_filter=expect_filter,
            timeout=timeout,
            headers=typed_stream.ttl_headers(ttl, headers),
            keys=keys,
        )

    async def schedule(
        self,
        timer: Topic[T],
        due: Topic[T],
        payload: T,
        *,
        at: datetime,
        scope: Scope = NO_SCOPE,
        msg_id: str | None = None,
        timeout: float = 10.0,
        **keys: str,
    ) -> Ack:
        """Let the server store a message under ``due`` at a time. The schedule survives restarts of clients and of the
        server.

        Until then the message is stored in the same stream under ``timer``. A later message with the same keys replaces
        it. If the time has passed, the server stores the message at once. Raises as ``append``.
        """
        return await typed_stream.append(
            self.link,
            self.outbound,
            timer,
            payload,
            scope=scope,
            msg_id=msg_id,
            expect=None,
            expect_filter=None,
            timeout=timeout,
            headers=typed_stream.schedule_headers(at, due.subject.format(**keys)),
            keys=keys,
        )

    async def call(
        self,
        endpoint: Endpoint[Req, Rep],
        request: Req,
        *,
        scope: Scope = NO_SCOPE,
        timeout: float = 5.0,
        repeatable: bool = False,
        absent: float | None = None,
        **keys: str,
    ) -> Rep:
        """Call a service and return its reply.

        While no service listens, the request is repeated until ``timeout`` seconds have passed, or until ``absent``
        seconds have passed, which is for services that may not exist. Once a service may have received the request, it
        is not repeated, unless the request is ``repeatable``. A repeatable request is sent again if the connection was
        lost before the reply, and after some seconds without a reply, because the service that received it may have
        ended. Raises ``NoResponders``, ``CallTimeout``, ``RemoteFault``, ``DecodeError``.
        """
        return await self._calls.call(
            endpoint, request, scope=scope, timeout=timeout, repeatable=repeatable, absent=absent, keys=keys
        )

    def call_streaming(
        self,
        endpoint: Endpoint[Req, Rep],
        request: Req,
        *,
        scope: Scope = NO_SCOPE,
        idle_timeout: float = 5.0,
        **keys: str,
    ) -> AbstractAsyncContextManager[AsyncIterator[Rep]]:
        """Call a streaming service and iterate over its replies.

        The service sends heartbeats. Leaving the block early cancels the work of the service.

        Raises:
            NoResponders: no service listens.
            CallTimeout: nothing arrived for ``idle_timeout`` seconds, or a reply was lost with a connection.
            RemoteFault: the service refused or failed, also while iterating.
            DecodeError: a reply cannot be decoded.
        """
        return self._calls.call_streaming(
            endpoint, request, scope=scope, idle_timeout=idle_timeout, keys=keys
        )

    async def last(self, topic: Topic[T], *, timeout: float = 5.0, **keys: str) -> StoredMessage[T] | None:
        """Return the last stored message; None if there is none. A missing key matches any value.

        Waits up to ``timeout`` seconds for a server that is away or has no leader. Raises ``StreamError``,
        ``DecodeError``.
        """
        return await typed_stream.last(self.link, self.inbound, topic, timeout, keys)

    async def last_seq(self, topic: Topic[Any], **keys: str) -> int:
        """Return the sequence of the last stored message, even if the message cannot be decoded; 0 if there is none.
        Raises ``StreamError``.
        """
        return await typed_stream.last_seq(self.link, topic, keys)

    def history(self, topic: Topic[T], *, after: int = 0, **keys: str) -> AsyncIterator[StoredMessage[T]]:
        """Yield the stored messages with a sequence above ``after``, the oldest first. A missing key matches any value.

        The iteration includes messages that are stored while it runs, and ends when it reaches the last stored message.
        Raises ``StreamError``, ``DecodeError``.
        """
        return typed_stream.history(self.link, self.inbound, topic, after, keys)

    async def increment(
        self,
        counter: Counter,
        amount: int,
        *,
        msg_id: str | None = None,
        label: str = "",
        timeout: float = 10.0,
        **keys: str,
    ) -> int:
        """Add ``amount``, which may be negative, to a number, and return the number after it. A number begins at 0.

        Concurrent increments never lose each other. The increment is stored once for each ``msg_id``; for a repetition
        the present number is returned. ``label`` is stored with the increment. Raises as ``append``.
        """
        return await counters.increment(
            self.link, counter, amount, msg_id=msg_id, label=label, timeout=timeout, keys=keys
        )

    async def total(self, counter: Counter, *, timeout: float = 5.0, **keys: str) -> int:
        """Return a number; 0 if nothing was added to it. Raises ``StreamError``."""
        return await counters.total(self.link, counter, timeout, keys)

    def increments(self, counter: Counter, *, after: int = 0, **keys: str) -> AsyncIterator[Increment]:
        """Yield the stored increments with a sequence above ``after``, the oldest first. A missing key matches any
        value. Raises ``StreamError``.
        """
        return counters.increments(self.link, counter, after, keys)

    async def delete(self, topic: Topic[Any], seq: int, *, missing_ok: bool = False) -> None:
        """Delete a stored message. Raises ``StreamError``, also if there is no such message unless ``missing_ok``."""
        await typed_stream.delete(self.link, topic, seq, missing_ok)

    async def purge(self, topic: Topic[Any], **keys: str) -> None:
        """Delete all stored messages of the topic. A missing key matches any value. Raises ``StreamError``; some
        messages may be deleted then.
        """
        await typed_stream.purge(self.link, topic, keys)

    def records(self, stream: str, filter: str = ">") -> AsyncIterator[StoredRecord]:
        """Yield the messages that a stream stores under matching subjects, as bytes, the oldest first. Raises
        ``StreamError``.
        """
        return RawStream(self.link, stream).records(filter)

    async def body(self, record: StoredRecord) -> bytes:
        """Return the body of a record, also of a body that is stored in an object. Raises ``DecodeError`` if that
        object is deleted.
        """
        return await self._claims.resolve(record.headers, record.data)

    async def erase(self, stream: str, record: StoredRecord) -> None:
        """Overwrite a stored message and its claimed body on the server's disk, and delete both. Raises
        ``StreamError``; the body may be erased then while the message still exists.
        """
        await self._claims.erase(record.headers)
        await RawStream(self.link, stream).erase(record.seq)

    async def subscribe(
        self,
        topic: Topic[T],
        handler: Callable[[ReceivedMessage[T]], Awaitable[None]],
        *,
        queue: str | None = None,
        limit: int = 64,
        confirm: bool = True,
        **keys: str,
    ) -> Subscription:
        """Call ``handler`` for each live message, for at most ``limit`` messages at once. A missing key matches any
        value.

        Each message goes to one of the subscriptions with the same ``queue``. With ``limit=1`` messages are handled in
        order. A message that cannot be decoded, or whose handler raises, is sent to the dead letters. With ``confirm``
        the call returns after the server has the subscription. Without it the call returns at once; the server has the
        subscription before it gets anything that this bus sends later.

        Not guaranteed: messages that are published while the connection is down.

        Raises nothing besides the errors of every method.
        """
        found = await subscription.subscribe(
            self.link,
            self.inbound,
            self.group,
            topic,
            handler,
            queue=queue,
            limit=limit,
            confirm=confirm,
            keys=keys,
            forget=self._subscriptions.discard,
        )
        self._subscriptions.add(found)
        return found

    def listen(
        self, topic: Topic[T], *, buffer: int = 1024, **keys: str
    ) -> AbstractAsyncContextManager[AsyncIterator[ReceivedMessage[T]]]:
        """Return the live messages as an async iterator that begins when the block is entered.

        A slow reader does not delay the connection: if more than ``buffer`` messages wait, the oldest are dropped.
        ``ReceivedMessage.gap`` is True on the first message after a drop or a reconnection.

        Raises nothing besides the errors of every method.
        """
        return subscription.listen(self.link, self.inbound, topic, buffer=buffer, keys=keys)

    def pinned(
        self, consumer: ConsumerSpec, topic: Topic[T]
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery[T]]]:
        """Return the messages of a durable consumer. With ``pinned_group`` only one connected client at a time gets
        messages.

        Pulling continues after reconnections and lost pins. Leaving the block returns the messages that were not taken
        and lets the next client begin at once. Messages that cannot be decoded are sent to the dead letters.

        Guarantees: a message is delivered again until it is settled.

        Not guaranteed: that a message is delivered once.

        Raises ``BusError`` while iterating if the connection is closed for good.
        """
        return pinned.deliveries(self.link, self.inbound, consumer, topic)

    def kv(self, spec: BucketSpec[T]) -> KeyValue[T]:
        """Return the key-value bucket of ``spec``. The bucket must exist (``apply`` or ``ensure``); nothing is
        requested yet. Raises nothing.
        """
        return KeyValue(self.link, spec)

    def objects(self, spec: ObjectStoreSpec) -> ObjectStore:
        """Return the object bucket of ``spec``. The bucket must exist (``apply`` or ``ensure``); nothing is requested
        yet. Raises nothing.
        """
        return ObjectStore(self.link, spec)

    def on_reconnect(self, callback: Callable[[], Awaitable[None]]) -> Callable[[], None]:
        """Call ``callback`` after each reconnection, and log its exceptions. The returned function removes the
        callback. Raises nothing.
        """
        return self.link.on_up(lambda: self.group.start_soon(_guarded, callback))

    async def drain(self) -> None:
        """End all subscriptions after the received messages are handled, and send what is buffered, for some seconds at
        most. Raises nothing if the connection is lost meanwhile.
        """
        await drain_all(list(self._subscriptions))
        if self.connected:
            await self.link.flush(timeout=self.link.settings.drain_timeout)

    async def _transmit(self, subject: str, body: bytes, headers: dict[str, str]) -> None:
        await self.link.publish(subject, body, headers=headers)


@asynccontextmanager
async def connect(settings: BusSettings, *, middleware: Sequence[BusMiddleware] = ()) -> AsyncIterator[Bus]:
    """Connect to NATS; the connection closes at the end of the block.

    Raises ``ConnectionFailed`` if no server can be reached now, and ``ServerTooOld``. After a later connection loss the
    bus reconnects.
    """
    link = NatsConnection(settings)
    await link.open()
    try:
        async with background_tasks() as group:
            link.on_lame_duck(lambda: group.start_soon(link.leave_lame_duck))
            yield Bus(link, group, middleware)
    finally:
        with anyio.CancelScope(shield=True):
            await link.close()


async def _guarded(callback: Callable[[], Awaitable[None]]) -> None:
    try:
        await callback()
    except Exception:
        _log.exception("a reconnection callback failed")
