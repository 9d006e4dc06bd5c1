"""Live core NATS subscriptions: handlers with a limiter, and the lossy iterator feed readers use."""

import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup
from nats.aio.msg import Msg

from trunkline_bus.async_iterator import StepIterator
from trunkline_bus.connection.inbound_pipeline import InboundPipeline
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.endpoint import Topic
from trunkline_bus.messages import ReceivedMessage

_log = logging.getLogger(__name__)

T = TypeVar("T")


class JobLimiter:
    """Runs at most ``limit`` jobs at once in a task group and can wait until all have ended."""

    def __init__(self, group: TaskGroup, limit: int) -> None:
        self._group = group
        self._in_turn = limit == 1
        self._slots = anyio.Semaphore(limit, fast_acquire=True)
        self._running = 0
        self._idle = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()

    async def start(self, job: Callable[[Msg], Awaitable[None]], msg: Msg) -> None:
        """Start ``job(msg)``, waiting for a free slot first; with a limit of one it needs no task of its own."""
        await self._slots.acquire()
        self._running += 1
        if self._in_turn:
            await self._run(job, msg)
        else:
            self._group.start_soon(self._run, job, msg)

    async def _run(self, job: Callable[[Msg], Awaitable[None]], msg: Msg) -> None:
        try:
            with anyio.CancelScope() as scope:
                self._scopes.add(scope)
                await job(msg)
        finally:
            self._scopes.discard(scope)
            self._slots.release()
            self._running -= 1
            if self._running == 0:
                self._idle.set()
                self._idle = anyio.Event()

    async def drain(self, timeout: float) -> None:
        """Wait until nothing runs; what still runs after ``timeout`` seconds is cancelled."""
        with anyio.move_on_after(timeout):
            while self._running:
                await self._idle.wait()
        self.cancel()

    def cancel(self) -> None:
        """Cancel what runs."""
        for scope in list(self._scopes):
            scope.cancel()


class Subscription:
    """A running subscription. ``aclose`` stops at once, ``drain`` first handles what already arrived.

    Each may be called after the others, and twice.
    """

    def __init__(
        self, link: NatsConnection, raw: Any, gate: JobLimiter, forget: Callable[["Subscription"], None]
    ) -> None:
        self._link = link
        self._raw = raw
        self._gate = gate
        self._forget = forget
        self._ended = False

    async def aclose(self) -> None:
        """Stop receiving and cancel running handlers."""
        if self._end():
            await self._link.unsubscribe(self._raw, drain=False)
        self._gate.cancel()

    async def drain(self) -> None:
        """Stop receiving, let handlers finish (at most the connection's ``drain_timeout``)."""
        await drain_all([self])

    def _end(self) -> bool:
        first, self._ended = not self._ended, True
        self._forget(self)
        return first


async def stop_all(subscriptions: Sequence[Subscription]) -> None:
    """Stop receiving on subscriptions of one connection; what already arrived is handled, and handlers go on."""
    running = [one for one in subscriptions if one._end()]
    if running:
        await running[0]._link.unsubscribe(*(one._raw for one in running), drain=True)


async def drain_all(subscriptions: Sequence[Subscription]) -> None:
    """Stop receiving on subscriptions of one connection, and let handlers finish (at most ``drain_timeout``)."""
    await stop_all(subscriptions)
    async with anyio.create_task_group() as group:
        for one in subscriptions:
            group.start_soon(one._gate.drain, one._link.settings.drain_timeout)


async def subscribe(
    link: NatsConnection,
    inbound: InboundPipeline,
    group: TaskGroup,
    topic: Topic[T],
    handler: Callable[[ReceivedMessage[T]], Awaitable[None]],
    *,
    queue: str | None,
    limit: int,
    confirm: bool,
    keys: dict[str, str],
    forget: Callable[[Subscription], None],
) -> Subscription:
    """Start a subscription whose handlers run in ``group``, at most ``limit`` at once."""
    gate = JobLimiter(group, limit)

    async def job(msg: Msg) -> None:
        await _handle(inbound, topic, handler, msg)

    async def deliver(msg: Msg) -> None:
        await gate.start(job, msg)

    subject = topic.subject.wildcard_filter(**keys)
    raw = await link.subscribe(subject, deliver, queue=queue or "", on_slow=_ignore, confirm=confirm)
    return Subscription(link, raw, gate, forget)


async def _handle(
    inbound: InboundPipeline,
    topic: Topic[T],
    handler: Callable[[ReceivedMessage[T]], Awaitable[None]],
    msg: Msg,
) -> None:
    try:
        await inbound.receive(topic.subject, topic.payload, msg.subject, msg.data, msg.headers, handler)
    except Exception as error:  # a failing handler or middleware must not end the subscription
        await inbound.dead_letter_failure(msg.subject, msg.data, error)


class _Buffer(Generic[T]):
    """The newest messages of a listener. Dropping the oldest leaves a gap mark on the next one taken."""

    def __init__(self, size: int) -> None:
        self._items: deque[ReceivedMessage[T]] = deque()
        self._size = size
        self._gap = False
        self._filled = anyio.Event()

    def mark_gap(self) -> None:
        """Messages may have been missed before the next one that arrives."""
        self._gap = True

    async def put(self, item: ReceivedMessage[T]) -> None:
        """Add a message, dropping the oldest when full."""
        if self._gap:
            self._gap = False
            item = _with_gap(item)
        self._items.append(item)
        if len(self._items) > self._size:
            self._items.popleft()
            self._items[0] = _with_gap(self._items[0])
        self._filled.set()

    async def get(self) -> ReceivedMessage[T]:
        """The oldest message, waiting for one."""
        while not self._items:
            self._filled = anyio.Event()
            await self._filled.wait()
        return self._items.popleft()


@asynccontextmanager
async def listen(
    link: NatsConnection, inbound: InboundPipeline, topic: Topic[T], *, buffer: int, keys: dict[str, str]
) -> AsyncIterator[AsyncIterator[ReceivedMessage[T]]]:
    """A live subscription as an async iterator that never holds up the connection."""
    box: _Buffer[T] = _Buffer(buffer)

    async def deliver(msg: Msg) -> None:
        await _handle(inbound, topic, box.put, msg)

    undo = link.on_up(box.mark_gap)
    raw = await link.subscribe(topic.subject.wildcard_filter(**keys), deliver, on_slow=box.mark_gap)
    try:
        yield StepIterator(box.get)
    finally:
        undo()
        with anyio.CancelScope(shield=True):
            await link.unsubscribe(raw, drain=False)


def _with_gap(item: ReceivedMessage[T]) -> ReceivedMessage[T]:
    return ReceivedMessage(item.subject, item.keys, item.envelope, gap=True)


def _ignore() -> None:
    pass
