"""The wire: one NATS connection with its reply inbox. Bytes, subjects and headers only; no envelopes.

The only module that drives the nats-py client. nats-py is asyncio-only and reports through callbacks, so this
module alone uses asyncio futures. It turns nats-py's errors into the bus's own, waits while the connection is down
instead of queueing requests blindly, and tells requests in flight when the connection is lost.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

import nats.errors
from nats.aio.client import Server
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as RawSubscription

from trunkline_bus.connection.nats_client import (
    PatchedClient,
    error_text,
    is_less_specific,
    is_login_refusal,
    parse_version,
)
from trunkline_bus.connection.settings import MINIMUM_SERVER, BusSettings
from trunkline_bus.errors import (
    BusError,
    CallTimeout,
    ConnectionFailed,
    NoResponders,
    ServerTooOld,
)

_log = logging.getLogger(__name__)

MessageSink = Callable[[Msg], None]
ConnectionListener = Callable[[], object]
STATUS = "Status"
_FIRST_ATTEMPTS = 4  # without a pause between them; the first connection fails rather than waits
APPENDS_IN_FLIGHT = 256
"""More unacknowledged appends at once only lengthen the server's queue, until repeats of the slow ones choke it."""


class ConnectionLost(BusError):
    """The connection broke while a request was in flight. Internal: becomes a retry or a public error."""


class NatsConnection:
    """One connection. ``open`` it, use it, ``close`` it."""

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self._nc = PatchedClient()
        self._sinks: dict[str, MessageSink] = {}
        self._fragile: set[asyncio.Future[Msg]] = set()
        self._inbox = ""
        self._tokens = 0
        self._up = asyncio.Event()
        self._closing = False
        self.append_slots = asyncio.Semaphore(APPENDS_IN_FLIGHT)
        """Taken by ``persistence.append_slot``."""
        self._last_error: Exception | None = None
        self._on_up: list[ConnectionListener] = []
        self._on_lost: list[ConnectionListener] = []
        self._on_lame_duck: list[ConnectionListener] = []
        self._on_slow: dict[int, ConnectionListener] = {}

    # Life

    async def open(self) -> None:
        """Connect. Raises ``ConnectionFailed`` or ``ServerTooOld``."""
        settings = self.settings
        try:
            async with asyncio.timeout(settings.connect_timeout):
                await self._connect()
        except (nats.errors.Error, OSError, TimeoutError, ValueError) as error:
            await self._abandon()
            cause = self._last_error or error
            text = f"cannot reach NATS at {settings.redacted_url}: {error_text(cause)}"
            raise ConnectionFailed(text, denied="authorization" in text.lower()) from error
        if parse_version(self.server_version) < MINIMUM_SERVER:
            await self.close()
            raise ServerTooOld(
                f"nats-server {self.server_version} at {settings.redacted_url} is too old; "
                f"Trunkline needs {'.'.join(map(str, MINIMUM_SERVER))} or newer"
            )
        self._inbox = self._nc.new_inbox()
        await self._nc.subscribe(f"{self._inbox}.*", cb=self._deliver_reply, pending_bytes_limit=0)
        self._up.set()

    async def _connect(self) -> None:
        settings = self.settings
        await self._nc.connect(
            settings.servers,
            name=settings.name,
            user=settings.user,
            password=settings.password,
            user_credentials=settings.credentials_file,
            inbox_prefix=settings.inbox_prefix,
            error_cb=self._note_error,
            disconnected_cb=self._note_lost,
            reconnected_cb=self._note_up,
            lame_duck_mode_cb=self._note_lame_duck,
            reconnect_to_server_handler=self._choose_server,
            reconnect_time_wait=0,
            max_reconnect_attempts=_FIRST_ATTEMPTS,
            ping_interval=5,
            pending_size=8 * 1024 * 1024,
            flush_timeout=2.0,
        )
        self._nc.options["max_reconnect_attempts"] = -1

    async def _abandon(self) -> None:
        self._closing = True
        try:
            await self._nc.close()
        except (nats.errors.Error, OSError, AssertionError) as error:
            _log.debug("closing a half open connection: %s", error)

    async def close(self) -> None:
        """Send what is buffered, then close. Never raises; safe to call twice."""
        if self._closing:
            return
        if self.connected:
            await self.flush(timeout=2.0)
        self._closing = True
        self._break_fragile()
        await self._abandon()

    @property
    def connected(self) -> bool:
        """Report whether the connection is up right now."""
        return self._up.is_set() and bool(self._nc.is_connected)

    @property
    def closed(self) -> bool:
        """Report whether this end closed the connection for good."""
        return self._closing

    @property
    def server_version(self) -> str:
        """The version of the server last connected to."""
        return str(self._nc._server_info.get("version", "0.0.0"))

    @property
    def server_address(self) -> str:
        """``host:port`` of the server connected to; empty while there is none."""
        url = self._nc.connected_url
        return f"{url.hostname}:{url.port}" if url is not None else ""

    @property
    def max_payload(self) -> int:
        """The largest message the server takes, in bytes."""
        return int(self._nc.max_payload)

    async def wait_connected(self, timeout: float) -> None:
        """Return once the connection is up. Raises ``ConnectionFailed`` after ``timeout`` seconds or when closed."""
        if self.connected:
            return
        try:
            async with asyncio.timeout(timeout):
                while not self.connected:
                    self._refuse_closed()
                    self._up.clear()
                    await self._up.wait()
        except TimeoutError as error:
            self._raise_unreachable(error)

    def on_up(self, listener: ConnectionListener) -> Callable[[], None]:
        """Call ``listener`` after each reconnection; returns the undo."""
        return _added(self._on_up, listener)

    def on_lost(self, listener: ConnectionListener) -> Callable[[], None]:
        """Call ``listener`` when the connection is lost or closed; returns the undo."""
        return _added(self._on_lost, listener)

    def on_lame_duck(self, listener: ConnectionListener) -> None:
        """Call ``listener`` when the server says it is about to shut down."""
        self._on_lame_duck.append(listener)

    async def leave_lame_duck(self) -> None:
        """Leave a server that is about to shut down, when there is another one to go to."""
        if len(self._nc.servers) > 1 and self.connected:
            await self.flush(timeout=2.0)
            await self._nc.force_reconnect()

    # Sending

    async def publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Hand bytes to the connection. While it is down they are buffered, and beyond the buffer this waits."""
        while True:
            try:
                return await self._nc.publish(subject, data, reply, dict(headers) if headers else None)
            except nats.errors.OutboundBufferLimitError:
                await self.wait_connected(self.settings.drain_timeout)
            except nats.errors.MaxPayloadError as error:
                raise BusError(
                    f"a message of {len(data)} bytes to {subject} is over the server's limit of {self.max_payload}"
                ) from error
            except nats.errors.ConnectionClosedError as error:
                self._raise_unreachable(error)

    async def flush(self, timeout: float) -> bool:
        """Report whether everything sent before, subscriptions too, reached the server within ``timeout`` seconds.

        nats-py alone would let its ping overtake what is still buffered, so the buffer is written out first.
        """
        try:
            await self._nc._flush_pending(force_flush=True)
            await self._nc.flush(timeout)  # type: ignore[arg-type]
        except (nats.errors.Error, OSError, asyncio.InvalidStateError) as error:
            _log.debug("flush: %s", error)
            return False
        return True

    def new_inbox(self) -> str:
        """A subject of our own for a subscription of one's own."""
        return str(self._nc.new_inbox())

    def open_inbox(self, sink: MessageSink) -> str:
        """A reply subject whose messages go to ``sink`` (which must not block) until ``close_inbox``."""
        self._tokens += 1
        token = f"{self._tokens:x}"
        self._sinks[token] = sink
        return f"{self._inbox}.{token}"

    def close_inbox(self, inbox: str) -> None:
        """Forget a reply subject; closing twice does nothing."""
        self._sinks.pop(inbox[len(self._inbox) + 1 :], None)

    async def request(
        self,
        subject: str,
        data: bytes,
        *,
        timeout: float,
        headers: Mapping[str, str] | None = None,
        fragile: bool = False,
    ) -> Msg:
        """Ask and wait for one reply. A ``fragile`` request fails at once when the connection is lost.

        Raises ``CallTimeout``, ``NoResponders``, ``ConnectionLost`` (fragile only) or ``ConnectionFailed``.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        if not self.connected:
            await self.wait_connected(timeout)
        future: asyncio.Future[Msg] = loop.create_future()
        inbox = self.open_inbox(lambda msg: None if future.done() else future.set_result(msg))
        timer = loop.call_at(deadline, _expire, future, subject, timeout)
        if fragile:
            self._fragile.add(future)
        try:
            await self.publish(subject, data, reply=inbox, headers=headers)
            msg = await future
        finally:
            timer.cancel()
            self.close_inbox(inbox)
            self._fragile.discard(future)
        if msg.headers is not None and msg.headers.get(STATUS) == "503" and not msg.data:
            raise NoResponders(f"nobody listens on {subject}")
        return msg

    # Receiving

    async def subscribe(
        self,
        subject: str,
        deliver: Callable[[Msg], Awaitable[None]],
        *,
        queue: str = "",
        on_slow: ConnectionListener,
        confirm: bool = True,
    ) -> RawSubscription:
        """Subscribe with ``deliver`` awaited in the subscription's own task, so it never stalls the reader.

        Without ``confirm`` the server may not have it yet; it has it before anything that is sent later from here.
        """
        raw = await self._nc.subscribe(subject, queue=queue, cb=deliver)
        self._on_slow[raw._id] = on_slow
        if confirm:
            await self.confirm_subscriptions()
        return raw

    async def confirm_subscriptions(self) -> None:
        """Wait until the server has every subscription made so far, at most ``connect_timeout``. While the
        connection is down this returns at once: nats-py subscribes again when it is up."""
        if self.connected:
            await self.flush(timeout=self.settings.connect_timeout)

    async def unsubscribe(self, *subscriptions: RawSubscription, drain: bool) -> None:
        """End subscriptions; with ``drain`` what was already sent is still delivered, after one round trip for all of
        them and within ``drain_timeout``. Never raises."""
        for raw in subscriptions:
            self._on_slow.pop(raw._id, None)
        if drain and self.connected:
            try:
                async with asyncio.timeout(self.settings.drain_timeout):
                    await self._deliver_pending(subscriptions)
            except (nats.errors.Error, OSError, TimeoutError) as error:
                _log.debug("drain of %d subscriptions: %s", len(subscriptions), error)
        for raw in subscriptions:
            try:
                await raw.unsubscribe()
            except (nats.errors.Error, OSError) as error:
                _log.debug("unsubscribe from %s: %s", raw.subject, error)

    async def _deliver_pending(self, subscriptions: Sequence[RawSubscription]) -> None:
        # What nats-py's drain does, but its round trip is one for each subscription, and a worker has a hundred.
        for raw in subscriptions:
            await self._nc._send_unsubscribe(raw._id)
        await self.flush(timeout=self.settings.drain_timeout)
        for raw in subscriptions:
            await raw._pending_queue.join()

    # What nats-py tells us

    async def _deliver_reply(self, msg: Msg) -> None:
        sink = self._sinks.get(msg.subject[len(self._inbox) + 1 :])
        if sink is not None:
            sink(msg)

    async def _note_error(self, error: Exception) -> None:
        if not (isinstance(error, nats.errors.NoServersError) or is_less_specific(error, self._last_error)):
            self._last_error = error
        if isinstance(error, nats.errors.SlowConsumerError):
            _log.warning("messages dropped: the subscription to %s is too slow", error.subject)
            self._on_slow.get(error.sid, _nothing)()
        elif "permissions violation" in str(error).lower():
            _log.error("%s; grant the subject to this user on the NATS server", error)
        else:
            _log.debug("nats: %s", error)

    async def _note_lost(self) -> None:
        self._up.clear()
        if not self._closing:
            _log.warning("connection to NATS at %s lost; reconnecting", self.settings.redacted_url)
        self._break_fragile()

    async def _note_up(self) -> None:
        _log.info("connected to NATS at %s again", self.settings.redacted_url)
        self._last_error = None
        self._up.set()
        for listener in list(self._on_up):
            listener()

    async def _note_lame_duck(self) -> None:
        for listener in self._on_lame_duck:
            listener()

    def _break_fragile(self) -> None:
        for future in list(self._fragile):
            if not future.done():
                future.set_exception(ConnectionLost("the connection to NATS was lost"))
        for listener in list(self._on_lost):
            listener()

    def _choose_server(self, servers: list[Server], _info: dict[str, Any]) -> tuple[Server, float]:
        """The server tried least, after a wait that doubles with each round and never is the same for all. Where the
        login was refused a person has to act, so it is tried about once a second."""
        server = min(servers, key=lambda one: one.reconnects)
        settings = self.settings
        wait = min(settings.min_reconnect_wait * 2 ** min(server.reconnects, 10), settings.max_reconnect_wait)
        if is_login_refusal(self._last_error):
            wait = settings.refused_wait
        return server, wait * random.uniform(0.5, 1.0)

    def _refuse_closed(self) -> None:
        if self._closing or self._nc.is_closed:
            raise ConnectionFailed(f"the connection to NATS at {self.settings.redacted_url} is closed")

    def _raise_unreachable(self, error: Exception) -> NoReturn:
        self._refuse_closed()
        detail = error_text(self._last_error or error)
        raise ConnectionFailed(f"cannot reach NATS at {self.settings.redacted_url}: {detail}") from error


def _expire(future: "asyncio.Future[Msg]", subject: str, timeout: float) -> None:
    if not future.done():
        future.set_exception(CallTimeout(f"no reply from {subject} in {timeout:g} s"))


def _added(listeners: list[ConnectionListener], listener: ConnectionListener) -> Callable[[], None]:
    listeners.append(listener)
    return lambda: listeners.remove(listener) if listener in listeners else None


def _nothing() -> None:
    pass
