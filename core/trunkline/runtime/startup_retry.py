"""Waits for NATS at the start: workers and servers start in any order, and a server may be temporarily
unavailable."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from trunkline_bus import BusError, ConnectionFailed, StreamUnavailable
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0


async def retry_until_available(attempt: Callable[[], Awaitable[T]], seconds: float, stop: anyio.Event) -> T:
    """Return the result of ``attempt`` as soon as NATS is available. The wait is logged once.

    Raises the last error of ``attempt`` when ``seconds`` have passed or ``stop`` is set, and at once an error
    that waiting cannot resolve, such as a wrong password.
    """
    deadline, backoff = anyio.current_time() + seconds, Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    logged = False
    while True:
        try:
            return await attempt()
        except (ConnectionFailed, StreamUnavailable) as error:
            late = anyio.current_time() + backoff.delay > deadline
            if late or stop.is_set() or not _is_transient(error):
                raise
            if not logged:
                log.warning("waiting for NATS, for %g s at most: %s", seconds, error)
                logged = True
        await backoff.wait(stop)


def _is_transient(error: BusError) -> bool:
    return not (isinstance(error, ConnectionFailed) and error.denied)
