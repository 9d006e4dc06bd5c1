"""Requests that are repeated until the platform accepts them, as clients do while processes are down."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from trunkline.errors import Unavailable
from trunkline_bus import BusError, RemoteFault

T = TypeVar("T")

PASSING = ("engine_unavailable", "storage_failure")
"""Refusals that say: try again."""

PAUSE = 0.2


async def until_accepted(ask: Callable[[], Awaitable[T]]) -> T:
    """Repeat a request until it is accepted. Raises RemoteFault for a permanent refusal, which is not repeated."""
    while True:
        try:
            return await ask()
        except Unavailable:
            await anyio.sleep(PAUSE)
        except RemoteFault as fault:
            if fault.code not in PASSING:
                raise
            await anyio.sleep(PAUSE)


async def until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """The same for a request that may be sent twice: it is repeated after every error of the bus, too."""
    while True:
        try:
            return await until_accepted(ask)
        except RemoteFault:
            raise
        except BusError:
            await anyio.sleep(PAUSE)
