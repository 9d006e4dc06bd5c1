"""The outbound path of a message: envelope, middleware, encoding, claim check. The caller transmits the bytes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from trunkline_bus.connection.claim_check import CLAIM_HEADER, ClaimCheckStore
from trunkline_bus.connection.codec import Codec
from trunkline_bus.connection.middleware import BusMessage, BusMiddleware, chained
from trunkline_bus.envelope import Envelope, Scope
from trunkline_bus.errors import BusError
from trunkline_bus.ids import new_id
from trunkline_bus.trace import current_traceparent

R = TypeVar("R")
Transmit = Callable[[str, bytes, dict[str, str]], Awaitable[R]]
NO_SCOPE = Scope()
TRACEPARENT = "traceparent"


class MessageWithheld(BusError):
    """A middleware withheld an outgoing message."""


class OutboundPipeline:
    """Encodes the messages that one connection sends."""

    def __init__(
        self, name: str, codec: Codec, claims: ClaimCheckStore, middleware: Sequence[BusMiddleware]
    ) -> None:
        self._name = name
        self._codec = codec
        self._claims = claims
        self._middleware = tuple(middleware)

    def wrap(self, payload: Any, scope: Scope) -> Envelope[Any]:
        """Return the payload in a new envelope with the present time, this connection's name and the current trace."""
        return Envelope(
            id=new_id(),
            time=datetime.now(UTC),
            source=self._name,
            data=payload,
            block=scope.block,
            conversation=scope.conversation,
            turn=scope.turn,
            cause=scope.cause,
            traceparent=current_traceparent(),
        )

    async def send(
        self, subject: str, envelope: Envelope[Any], headers: Mapping[str, str], transmit: Transmit[R]
    ) -> R:
        """Run the middleware, then ``transmit(subject, bytes, headers)``. Raises ``MessageWithheld``."""
        if not self._middleware:
            return await self._transmit(subject, envelope, headers, transmit)
        results: list[R] = []

        async def last(message: BusMessage) -> None:
            results.append(await self._transmit(message.subject, message.envelope, message.headers, transmit))

        await chained(self._middleware, last)(
            BusMessage(direction="out", subject=subject, envelope=envelope, headers=headers)
        )
        if not results:
            raise MessageWithheld(f"a bus middleware withheld the message to {subject}")
        return results[-1]

    async def _transmit(
        self, subject: str, envelope: Envelope[Any], headers: Mapping[str, str], transmit: Transmit[R]
    ) -> R:
        body = self._codec.encode(envelope)
        final = dict(headers)
        if envelope.traceparent is not None:
            final[TRACEPARENT] = envelope.traceparent
        if len(body) > self._claims.threshold:
            final[CLAIM_HEADER] = await self._claims.put(envelope.id, body)
            body = self._codec.encode(msgspec.structs.replace(envelope, data=None))
        return await transmit(subject, body, final)
