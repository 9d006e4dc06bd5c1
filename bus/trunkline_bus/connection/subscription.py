"""Live core NATS subscriptions: handlers with a limit on concurrency, and an iterator that drops old messages."""

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
    """Runs at most ``limit`` jobs at once in a task group."""

    def __init__(self, group: TaskGroup, limit: int) -> None:
        self._group = group
        self._in_turn = limit == 1
        self._slots = anyio.Semaphore(limit, fast_acquire=True)
        self._running = 0
        self._idle = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()

    async def start(self, job: Callable[[Msg], Awaitable[None]], msg: Msg) -> None:
        """Wait for a free slot, then start ``job(msg)``. With a limit of one the job runs in the caller's task."""
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
        """Wait until no job runs. Jobs that still run after ``timeout`` seconds are cancelled."""
        with anyio.move_on_after(timeout):
            while self._running:
                await self._idle.wait()
        self.cancel()

    def cancel(self) -> None:
        """Cancel the running jobs."""
        for scope in list(self._scopes):
            scope.cancel()


class Subscription:
    """A running subscription. ``aclose`` cancels handlers; ``drain`` first handles what has arrived.

    Both methods may be called more than once and in any order.
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
        """Stop receiving, and wait at most the connection's ``drain_timeout`` for the handlers to finish."""
        await drain_all([self])

    def _end(self) -> bool:
        first, self._ended = not self._ended, True
        self._forget(self)
        return first


async def stop_all(subscriptions: Sequence[Subscription]) -> None:
    """Stop receiving on subscriptions of one connection. Messages that have arrived are handled, and handlers keep
    running.
    """
    running = [one for one in subscriptions if one._end()]
    if running:
        await running[0]._link.unsubscribe(*(one._raw for one in running), drain=True)


async def drain_all(subscriptions: Sequence[Subscription]) -> None:
    """Stop receiving on subscriptions of one connection, and wait at most ``drain_timeout`` for the handlers to
    finish.
    """
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
    """The newest messages for a listener. After dropped messages the next message that is taken has ``gap`` set."""

    def __init__(self, size: int) -> None:
        self._items: deque[ReceivedMessage[T]] = deque()
        self._size = size
        self._gap = False
        self._filled = anyio.Event()

    def mark_gap(self) -> None:
        """Set ``gap`` on the next message that arrives."""
        self._gap = True

    async def put(self, item: ReceivedMessage[T]) -> None:
        """Add a message; if the buffer is full, drop the oldest one."""
        if self._gap:
            self._gap = False
            item = _with_gap(item)
        self._items.append(item)
        if len(self._items) > self._size:
            self._items.popleft()
            self._items[0] = _with_gap(self._items[0])
        self._filled.set()

    async def get(self) -> ReceivedMessage[T]:
        """Wait for a message and return the oldest one."""
        while not self._items:
            self._filled = anyio.Event()
            await self._filled.wait()
        return self._items.popleft()


@asynccontextmanager
async def listen(
    link: NatsConnection, inbound: InboundPipeline, topic: Topic[T], *, buffer: int, keys: dict[str, str]
) -> AsyncIterator[AsyncIterator[ReceivedMessage[T]]]:
    """Return a live subscription as an async iterator. A slow reader does not delay the connection."""
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
