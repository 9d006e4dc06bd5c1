"""Middleware around every envelope that leaves or enters a connection."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from trunkline_bus.envelope import Envelope

Proceed = Callable[["BusMessage"], Awaitable[None]]


class BusMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message on its way ``"out"`` or ``"in"``. Change it with ``msgspec.structs.replace``."""

    direction: Literal["out", "in"]
    subject: str
    envelope: Envelope[Any]
    headers: Mapping[str, str]


class BusMiddleware(Protocol):
    """Sees each message that is sent, and each that is handed to a handler, a listener, a puller or a caller.

    What ``last`` and ``history`` read back is not shown again. Call ``proceed`` to pass a message on; not calling
    it withholds the message.

    An exception on the way out reaches the sender. On the way in it is treated like a handler's exception.
    Append, call and streaming call raise ``BusError`` when an outgoing message is withheld.
    """

    async def __call__(self, message: BusMessage, proceed: Proceed) -> None:
        """Look at ``message``, perhaps change it, and ``await proceed(message)``."""
        ...


def chained(middleware: Sequence[BusMiddleware], last: Proceed) -> Proceed:
    """``last`` wrapped in the middleware, the first one outermost."""
    step = last
    for layer in reversed(middleware):
        step = _wrapped(layer, step)
    return step


def _wrapped(layer: BusMiddleware, proceed: Proceed) -> Proceed:
    async def run(message: BusMessage) -> None:
        await layer(message, proceed)

    return run
