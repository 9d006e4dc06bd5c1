"""The bus a program holds: one connection with everything it can send, ask, store and receive.

Only the face; each verb lives in its own module.
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
from trunkline_bus.endpoint import Endpoint, Topic
from trunkline_bus.envelope import Scope
from trunkline_bus.messages import Ack, ReceivedMessage, StoredMessage
from trunkline_bus.services.calls import EndpointCaller
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
    """One connection to NATS. Get it from ``connect``; it reconnects for ever by itself.

    Keyword arguments named like the keys of a subject fill them in. ``link``, ``group``, ``inbound`` and ``outbound``
    are for this package's own modules.
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
        """Report whether the connection is up right now."""
        return self.link.connected

    @property
    def server_version(self) -> str:
        """The version of the server last connected to."""
        return self.link.server_version

    async def publish(self, topic: Topic[T], payload: T, *, scope: Scope = NO_SCOPE, **keys: str) -> None:
        """Tell whoever listens, with no acknowledgement. Raises ``SubjectError``, ``ConnectionFailed``."""
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
        """Store a message in the topic's stream; returns once it is there.

        Repeats itself with the same message id (``msg_id``, by default the envelope's id) across restarts of the
        server until ``timeout`` seconds passed, so it is stored at most once. ``expect`` is the sequence the last
        message of the subject (or of ``expect_filter``, which may hold wildcards) must have, 0 for none. After ``ttl``
        (whole seconds, at least 1) the stream forgets the message, if it allows that.
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
        """Have the server store a message under ``due`` at a time, whatever is restarted until then.

        It waits in the same stream under ``timer``, which holds one for these keys: a later one takes its place. A time
        that has passed is now. Raises as ``append``.
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
        """Ask a service and return its reply.

        While nobody listens the request is repeated until ``timeout`` seconds passed, or ``absent`` seconds where it
        may well be that nobody ever will; once somebody may have heard it, it is never repeated, unless it is
        ``repeatable``: then it is sent again when the connection was lost before the reply came, or after some
        seconds of silence, because who had it may be dead. Raises ``NoResponders``, ``CallTimeout``,
        ``RemoteFault``, ``DecodeError``.
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
        """Ask a streaming service and iterate over its replies.

        The service sends signs of life by itself, so ``idle_timeout`` silent seconds mean it is gone: then
        ``CallTimeout`` is raised. ``NoResponders`` comes at once. Leaving the block early stops the service's work.
        """
        return self._calls.call_streaming(
            endpoint, request, scope=scope, idle_timeout=idle_timeout, keys=keys
        )

    async def last(self, topic: Topic[T], *, timeout: float = 5.0, **keys: str) -> StoredMessage[T] | None:
        """The last stored message; a missing key matches any.

        A server that is away, or has no leader yet, is waited for until ``timeout`` seconds passed. Raises
        ``StreamError`` kinds, ``DecodeError``.
        """
        return await typed_stream.last(self.link, self.inbound, topic, timeout, keys)

    async def last_seq(self, topic: Topic[Any], **keys: str) -> int:
        """The sequence of the last stored message, 0 for none; also of one that cannot be read.

        Raises ``StreamError`` kinds.
        """
        return await typed_stream.last_seq(self.link, topic, keys)

    def history(self, topic: Topic[T], *, after: int = 0, **keys: str) -> AsyncIterator[StoredMessage[T]]:
        """All stored messages with a sequence above ``after``, oldest first; a missing key matches any.

        Ends at the message that was the last one when it got there. Raises ``StreamError`` kinds, ``DecodeError``.
        """
        return typed_stream.history(self.link, self.inbound, topic, after, keys)

    async def delete(self, topic: Topic[Any], seq: int) -> None:
        """Remove one stored message. Raises ``StreamError`` when it is not there."""
        await typed_stream.delete(self.link, topic, seq)

    async def purge(self, topic: Topic[Any], **keys: str) -> None:
        """Remove all stored messages of the topic; a missing key matches any."""
        await typed_stream.purge(self.link, topic, keys)

    def records(self, stream: str, filter: str = ">") -> AsyncIterator[StoredRecord]:
        """Yield the messages that a stream keeps under matching subjects, as bytes, oldest first. Raises
        ``StreamError`` kinds.
        """
        return RawStream(self.link, stream).records(filter)

    async def body(self, record: StoredRecord) -> bytes:
        """The body of such a message, also when it was too large for one. Raises ``DecodeError`` when that is gone."""
        return await self._claims.resolve(record.headers, record.data)

    async def erase(self, stream: str, record: StoredRecord) -> None:
        """Overwrite a stored message, and the large body that it names, on the server's disk, and remove both.

        Raises ``StreamError`` kinds.
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
        """Run ``handler`` for each live message, at most ``limit`` at once; a missing key matches any.

        Of all subscriptions with the same ``queue`` one gets a message. With ``limit=1`` messages are handled in
        order. A message that cannot be read and one whose handler fails go to the dead letters. Without ``confirm``
        this does not wait until the server has the subscription; it has it before what is sent later on this bus.
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
        """Live messages as an async iterator, from the moment the block is entered.

        Never holds up the connection: when more than ``buffer`` wait, the oldest are dropped. ``ReceivedMessage.gap``
        is True on the first message after a drop or a reconnection.
        """
        return subscription.listen(self.link, self.inbound, topic, buffer=buffer, keys=keys)

    def pinned(
        self, consumer: ConsumerSpec, topic: Topic[T]
    ) -> AbstractAsyncContextManager[AsyncIterator[Delivery[T]]]:
        """Messages of a durable consumer; with ``pinned_group`` only one live client at a time gets them.

        Keeps pulling across reconnections and lost pins. Leaving the block hands back what was not taken and
        lets the next client in at once. Messages that cannot be read go to the dead letters.
        """
        return pinned.deliveries(self.link, self.inbound, consumer, topic)

    def kv(self, spec: BucketSpec[T]) -> KeyValue[T]:
        """The key-value bucket of ``spec``; it must exist (``apply`` or ``ensure``)."""
        return KeyValue(self.link, spec)

    def objects(self, spec: ObjectStoreSpec) -> ObjectStore:
        """The object bucket of ``spec``; it must exist (``apply`` or ``ensure``)."""
        return ObjectStore(self.link, spec)

    def on_reconnect(self, callback: Callable[[], Awaitable[None]]) -> Callable[[], None]:
        """Run ``callback`` after each reconnection; returns the undo. Its exceptions are logged."""
        return self.link.on_up(lambda: self.group.start_soon(_guarded, callback))

    async def drain(self) -> None:
        """End all subscriptions after what they already got is handled, and send what is buffered."""
        await drain_all(list(self._subscriptions))
        if self.connected:
            await self.link.flush(timeout=self.link.settings.drain_timeout)

    async def _transmit(self, subject: str, body: bytes, headers: dict[str, str]) -> None:
        await self.link.publish(subject, body, headers=headers)


@asynccontextmanager
async def connect(settings: BusSettings, *, middleware: Sequence[BusMiddleware] = ()) -> AsyncIterator[Bus]:
    """Connect to NATS for the length of the block.

    Raises ``ConnectionFailed`` when no server can be reached now and ``ServerTooOld``; later losses are healed.
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
