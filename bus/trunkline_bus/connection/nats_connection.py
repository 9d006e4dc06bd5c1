"""One NATS connection with its reply inbox. It handles bytes, subjects and headers, not envelopes.

Only this module drives the nats-py client. nats-py needs asyncio and reports through callbacks, so only this module
uses asyncio futures. It converts nats-py's errors into the errors of the bus. It waits while the connection is down
instead of queueing requests, and it fails requests in flight when the connection is lost.
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
_FIRST_ATTEMPTS = 4  # no pause between them: the first connection fails instead of waiting
APPENDS_IN_FLIGHT = 256
"""The maximum number of unacknowledged appends. More appends only lengthen the server's queue, until slow ones are
repeated and overload it.
"""


class ConnectionLost(BusError):
    """The connection was lost while a request was in flight. Internal: leads to a retry or to a public error."""


class NatsConnection:
    """One connection. Call ``open`` before use and ``close`` after it."""

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
        """Acquired by ``retry.append_slot``."""
        self._last_error: Exception | None = None
        self._on_up: list[ConnectionListener] = []
        self._on_lost: list[ConnectionListener] = []
        self._on_lame_duck: list[ConnectionListener] = []
        self._on_slow: dict[int, ConnectionListener] = {}

    # Opening and closing

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
        """Send what is buffered, then close. Never raises. A second call does nothing."""
        if self._closing:
            return
        if self.connected:
            await self.flush(timeout=2.0)
        self._closing = True
        self._break_fragile()
        await self._abandon()

    @property
    def connected(self) -> bool:
        """Report whether the connection is open now."""
        return self._up.is_set() and bool(self._nc.is_connected)

    @property
    def closed(self) -> bool:
        """Report whether ``close`` was called."""
        return self._closing

    @property
    def server_version(self) -> str:
        """The version of the server of the current or last connection."""
        return str(self._nc._server_info.get("version", "0.0.0"))

    @property
    def server_address(self) -> str:
        """``host:port`` of the connected server; "" without a connection."""
        url = self._nc.connected_url
        return f"{url.hostname}:{url.port}" if url is not None else ""

    @property
    def max_payload(self) -> int:
        """The size of the largest message that the server accepts, in bytes."""
        return int(self._nc.max_payload)

    async def wait_connected(self, timeout: float) -> None:
        """Wait until the connection is open. Raises ``ConnectionFailed`` after ``timeout`` seconds, or if it was
        closed.
        """
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
        """Call ``listener`` after each reconnection. The returned function removes the listener."""
        return _added(self._on_up, listener)

    def on_lost(self, listener: ConnectionListener) -> Callable[[], None]:
        """Call ``listener`` when the connection is lost or closed. The returned function removes the listener."""
        return _added(self._on_lost, listener)

    def on_lame_duck(self, listener: ConnectionListener) -> None:
        """Call ``listener`` when the server announces that it shuts down."""
        self._on_lame_duck.append(listener)

    async def leave_lame_duck(self) -> None:
        """Leave a server that is about to shut down, if there is another server to connect to."""
        if len(self._nc.servers) > 1 and self.connected:
            await self.flush(timeout=2.0)
            await self._nc.force_reconnect()

    # Sending

    async def publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send bytes. While the connection is down the bytes are buffered; if the buffer is full, the call waits."""
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
        """Report whether everything sent before, subscriptions included, reached the server within ``timeout`` seconds.

        The method writes the buffer out first, because nats-py alone sends its ping ahead of the buffered data.
        """
        try:
            await self._nc._flush_pending(force_flush=True)
            await self._nc.flush(timeout)  # type: ignore[arg-type]
        except (nats.errors.Error, OSError, asyncio.InvalidStateError) as error:
            _log.debug("flush: %s", error)
            return False
        return True

    def new_inbox(self) -> str:
        """Return a new unique subject for a subscription."""
        return str(self._nc.new_inbox())

    def open_inbox(self, sink: MessageSink) -> str:
        """Return a reply subject whose messages go to ``sink`` until ``close_inbox``. ``sink`` must not block."""
        self._tokens += 1
        token = f"{self._tokens:x}"
        self._sinks[token] = sink
        return f"{self._inbox}.{token}"

    def close_inbox(self, inbox: str) -> None:
        """Close a reply subject. Closing it twice does nothing."""
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
        """Send a request and wait for one reply. A ``fragile`` request fails at once if the connection is lost.

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
        """Subscribe. ``deliver`` is awaited in the subscription's own task, so it does not stall the reader of the
        connection.

        Without ``confirm`` the server may not have the subscription yet when the call returns. The server has it before
        it gets anything that this connection sends later.
        """
        raw = await self._nc.subscribe(subject, queue=queue, cb=deliver)
        self._on_slow[raw._id] = on_slow
        if confirm:
            await self.confirm_subscriptions()
        return raw

    async def confirm_subscriptions(self) -> None:
        """Wait until the server has all subscriptions, at most ``connect_timeout``.

        While the connection is down the call returns at once: nats-py subscribes again after it reconnects.
        """
        if self.connected:
            await self.flush(timeout=self.settings.connect_timeout)

    async def unsubscribe(self, *subscriptions: RawSubscription, drain: bool) -> None:
        """End subscriptions. Never raises.

        With ``drain`` messages that the server has already sent are still delivered, after one round trip for all
        subscriptions and within ``drain_timeout``.
        """
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
        # Like nats-py's drain, which needs a round trip for each subscription; a worker has a hundred of them.
        for raw in subscriptions:
            await self._nc._send_unsubscribe(raw._id)
        await self.flush(timeout=self.settings.drain_timeout)
        for raw in subscriptions:
            await raw._pending_queue.join()

    # Callbacks of nats-py

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
        """Return the server with the fewest attempts, and the time to wait first.

        The wait doubles with each round and is randomized, so that clients do not connect at the same time. After a
        refused login a person has to act, so the wait is at most ``refused_wait`` seconds and does not grow.
        """
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
