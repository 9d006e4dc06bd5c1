"""Pull requests to a JetStream consumer: the messages of a pull, and why it ended. The callers run the loops."""

import enum
from typing import Any

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as RawSubscription

from trunkline_bus.connection.mailbox import Mailbox
from trunkline_bus.connection.nats_connection import STATUS, ConnectionLost, NatsConnection
from trunkline_bus.errors import CallTimeout, NoResponders
from trunkline_bus.streams.jetstream_protocol import nanoseconds

_SHORT = 1.0
"""Seconds. A pull that ends sooner needs no heartbeats, because its end shows that the server is alive."""


class PullEnd(enum.Enum):
    """The reason why a pull ended."""

    FULL = "the batch is complete"
    EMPTY = "it ran out of time"
    PIN_LOST = "another client holds the pin"
    GONE = "the consumer does not answer"
    BROKEN = "the connection or the server went away"


class PullRequester:
    """Pulls from one consumer, one request at a time: call ``start``, then ``next`` until it returns None, then read
    ``end``.

    Deliveries have the subject under which they are stored, so each requester has its own subscription.
    """

    def __init__(self, link: NatsConnection, stream: str, consumer: str) -> None:
        self._link = link
        self._request_subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._box: Mailbox | None = None
        self._raw: RawSubscription | None = None
        self._inbox = ""
        self._left = 0
        self._silence = 0.0
        self.end = PullEnd.FULL

    async def start(self, *, batch: int, expires: float, extra: dict[str, Any]) -> None:
        """Send a pull request. Raises ``ConnectionFailed``."""
        request: dict[str, Any] = {"batch": batch, "expires": nanoseconds(expires)}
        self._silence = expires + 1.0
        if expires > _SHORT:
            request["idle_heartbeat"] = nanoseconds(expires / 3)
            self._silence = expires * 2 / 3 + 1.0
        self._box = await self._opened()
        await self._link.publish(
            self._request_subject, msgspec.json.encode(request | extra), reply=self._inbox
        )
        self._left = batch
        self.end = PullEnd.FULL

    async def next(self) -> Msg | None:
        """Return the next message of the pull; None if the pull has ended. A cancelled call loses no message."""
        while self._left > 0 and self._box is not None:
            try:
                msg = await self._box.get(self._silence)
            except (CallTimeout, ConnectionLost, NoResponders) as error:
                self.end = PullEnd.GONE if isinstance(error, NoResponders) else PullEnd.BROKEN
                await self.close()
                return None
            status = (msg.headers or {}).get(STATUS)
            if status is None:
                self._left -= 1
                return msg
            if status != "100":
                self.end = _end_of(status, (msg.headers or {}).get("Description", ""))
                return None
        return None

    async def _opened(self) -> Mailbox:
        await self._link.wait_connected(self._link.settings.drain_timeout)
        if self._box is None:
            box = self._box = Mailbox(self._link, self._request_subject, fragile=True)

            async def deliver(msg: Msg) -> None:
                box.put(msg)

            self._inbox = self._link.new_inbox()
            self._raw = await self._link.subscribe(self._inbox, deliver, on_slow=_ignore)
        return self._box

    async def close(self) -> None:
        """Stop receiving. The next ``start`` begins a new subscription."""
        if self._box is not None:
            self._box.close()
            self._box = None
        if self._raw is not None:
            await self._link.unsubscribe(self._raw, drain=False)
            self._raw = None


def _end_of(status: str, description: str) -> PullEnd:
    if status in ("404", "408"):
        return PullEnd.EMPTY
    if status == "423":
        return PullEnd.PIN_LOST
    if status == "409" and "deleted" in description.lower():
        return PullEnd.GONE
    return PullEnd.EMPTY if "max" in description.lower() else PullEnd.BROKEN


def _ignore() -> None:
    pass
