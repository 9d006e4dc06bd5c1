"""Middleware around every envelope that leaves or enters a connection."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from trunkline_bus.envelope import Envelope

Proceed = Callable[["BusMessage"], Awaitable[None]]


class BusMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is sent (``"out"``) or received (``"in"``). Change it with ``msgspec.structs.replace``."""

    direction: Literal["out", "in"]
    subject: str
    envelope: Envelope[Any]
    headers: Mapping[str, str]


class BusMiddleware(Protocol):
    """Processes each message that is sent, and each message that is passed to a handler, a listener, a puller or a
    caller. Call ``proceed`` to pass a message on; without that call the message is withheld.

    Guarantees: the first middleware is the outermost.

    Not guaranteed: every message. Messages that ``last`` and ``history`` return do not pass the middleware. A message
    that is delivered again passes again.
    """

    async def __call__(self, message: BusMessage, proceed: Proceed) -> None:
        """Process ``message``, which may be replaced, and ``await proceed(message)``.

        Raises:
            Exception: on the way out it reaches the sender. On the way in it is treated like a handler's exception. If
                an outgoing message is withheld, append, call and streaming call raise ``BusError``.
        """
        ...


def chained(middleware: Sequence[BusMiddleware], last: Proceed) -> Proceed:
    """Return ``last`` wrapped in the middleware, the first of which is the outermost."""
    step = last
    for layer in reversed(middleware):
        step = _wrapped(layer, step)
    return step


def _wrapped(layer: BusMiddleware, proceed: Proceed) -> Proceed:
    async def run(message: BusMessage) -> None:
        await layer(message, proceed)

    return run
