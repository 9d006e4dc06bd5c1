"""One pull request to a JetStream consumer: its messages, and why it ended. The loops around it live elsewhere."""

import enum
from typing import Any

import msgspec
from nats.aio.msg import Msg

from trunkline_bus.errors import CallTimeout, NoResponders
from trunkline_bus.jetstream import Replies
from trunkline_bus.jsapi import nanoseconds
from trunkline_bus.link import STATUS, ConnectionLost, Link


class End(enum.Enum):
    """Why a pull brought no more messages."""

    FULL = "the batch is complete"
    EMPTY = "it ran out of time"
    PIN_LOST = "another client holds the pin"
    GONE = "the consumer does not answer"
    BROKEN = "the connection or the server went away"


class Pull:
    """An iterator over the messages of one pull. After it, ``end`` tells why it ended."""

    def __init__(
        self, link: Link, stream: str, consumer: str, *, batch: int, expires: float, extra: dict[str, Any]
    ) -> None:
        heartbeat = expires / 3
        request = {
            "batch": batch,
            "expires": nanoseconds(expires),
            "idle_heartbeat": nanoseconds(heartbeat),
            **extra,
        }
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._replies = Replies(link, subject, msgspec.json.encode(request), fragile=True)
        self._left = batch
        self._silence = heartbeat * 2 + 1.0
        self.end = End.FULL

    async def __aenter__(self) -> "Pull":
        """Send the pull. Raises ``ConnectionFailed``."""
        await self._replies.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._replies.__aexit__()

    def __aiter__(self) -> "Pull":
        return self

    async def __anext__(self) -> Msg:
        while self._left > 0:
            try:
                msg = await self._replies.next(self._silence)
            except (CallTimeout, ConnectionLost):
                self.end = End.BROKEN
                break
            except NoResponders:
                self.end = End.GONE
                break
            status = (msg.headers or {}).get(STATUS)
            if status is None:
                self._left -= 1
                return msg
            if status != "100":
                self.end = _end_of(status, (msg.headers or {}).get("Description", ""))
                break
        raise StopAsyncIteration


def _end_of(status: str, description: str) -> End:
    if status in ("404", "408"):
        return End.EMPTY
    if status == "423":
        return End.PIN_LOST
    if status == "409" and "deleted" in description.lower():
        return End.GONE
    return End.EMPTY if "max" in description.lower() else End.BROKEN
