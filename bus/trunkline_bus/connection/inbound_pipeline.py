"""The inbound path of a message: claim check, decoding, middleware, and dead letters."""

import base64
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from trunkline_bus.connection.claim_check import ClaimCheckStore
from trunkline_bus.connection.codec import Codec
from trunkline_bus.connection.middleware import BusMessage, BusMiddleware, chained
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.connection.outbound_pipeline import NO_SCOPE, OutboundPipeline
from trunkline_bus.envelope import Envelope
from trunkline_bus.errors import BusError, DecodeError, SubjectError
from trunkline_bus.messages import DeadLetter, ReceivedMessage
from trunkline_bus.subject import Subject

_log = logging.getLogger(__name__)

T = TypeVar("T")
_KEPT_BYTES = 64 * 1024


class InboundPipeline:
    """Decodes the messages that one connection receives."""

    def __init__(
        self,
        link: NatsConnection,
        codec: Codec,
        claims: ClaimCheckStore,
        outbound: OutboundPipeline,
        middleware: Sequence[BusMiddleware],
    ) -> None:
        self._link = link
        self._codec = codec
        self._claims = claims
        self._outbound = outbound
        self._middleware = tuple(middleware)
        self._dead = Subject(link.settings.dead_letters)
        if self._dead.keys not in ((), ("reason",)):
            raise SubjectError(
                f"the dead letter subject {self._dead.template!r} may have the key {{reason}} only"
            )

    async def open(self, payload: type[T], data: bytes, headers: Mapping[str, str] | None) -> Envelope[T]:
        """Return the envelope in a message body. Raises ``DecodeError``."""
        if headers:
            data = await self._claims.resolve(headers, data)
        return self._codec.decode(payload, data)

    async def parse(
        self, subject: Subject, payload: type[T], name: str, data: bytes, headers: Mapping[str, str] | None
    ) -> tuple[dict[str, str], Envelope[T]] | None:
        """Return the keys and the envelope of a message; None if the message was sent to the dead letters."""
        try:
            return subject.parse(name), await self.open(payload, data, headers)
        except SubjectError as error:
            await self.send_to_dead_letters(name, "bad_subject", str(error), data)
        except DecodeError as error:
            await self.send_to_dead_letters(name, error.reason, error.detail, data)
        return None

    async def receive(
        self,
        subject: Subject,
        payload: type[T],
        name: str,
        data: bytes,
        headers: Mapping[str, str] | None,
        handler: Callable[[ReceivedMessage[T]], Awaitable[None]],
    ) -> None:
        """Pass a live message through the middleware to ``handler``. Exceptions of both propagate."""
        parsed = await self.parse(subject, payload, name, data, headers)
        if parsed is None:
            return
        keys, envelope = parsed

        async def last(final_name: str, final_envelope: Envelope[T]) -> None:
            await handler(ReceivedMessage(final_name, keys, final_envelope))

        await self.handle(name, envelope, headers, last)

    async def handle(
        self,
        name: str,
        envelope: Envelope[T],
        headers: Mapping[str, str] | None,
        last: Callable[[str, Envelope[T]], Awaitable[None]],
    ) -> None:
        """Run the middleware and then ``last(subject, envelope)``. Exceptions propagate."""
        if not self._middleware:
            return await last(name, envelope)

        async def final(message: BusMessage) -> None:
            await last(message.subject, message.envelope)

        await chained(self._middleware, final)(
            BusMessage(direction="in", subject=name, envelope=envelope, headers=headers or {})
        )

    async def send_to_dead_letters(self, subject: str, reason: str, detail: str, data: bytes) -> None:
        """Publish a dead letter. Never raises: a failure is logged."""
        _log.warning("dead letter %s from %s: %s", reason, subject, detail)
        if subject.split(".")[:2] == self._dead.template.split(".")[:2]:
            return  # a dead letter about a dead letter could repeat without end
        letter = DeadLetter(
            subject=subject,
            reason=reason,
            detail=detail,
            data=base64.b64encode(data[:_KEPT_BYTES]).decode(),
            size=len(data),
        )
        target = self._dead.format(**dict.fromkeys(self._dead.keys, reason))
        try:
            await self._outbound.send(target, self._outbound.wrap(letter, NO_SCOPE), {}, self._post)
        except BusError as error:
            _log.error("cannot send the dead letter of %s: %s", subject, error)

    async def dead_letter_failure(self, subject: str, data: bytes, error: Exception) -> None:
        """Log a handler's exception and send the message to the dead letters."""
        _log.error("the handler of %s failed", subject, exc_info=error)
        await self.send_to_dead_letters(subject, "handler_failed", type(error).__name__, data)

    async def _post(self, subject: str, body: bytes, headers: dict[str, Any]) -> None:
        await self._link.publish(subject, body, headers=headers)
