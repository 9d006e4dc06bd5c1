"""A cache of the memory files that guards read, invalidated by memory's change events. While the content is unknown,
calls are refused.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from opentelemetry import trace

from trunkline.contracts.memory.cache import MemoryCache
from trunkline.errors import TRANSIENT_CODES, ToolError
from trunkline.telemetry import semconv
from trunkline_bus import Bus, BusError, RemoteFault, start_span

log = logging.getLogger(__name__)
tracer = trace.get_tracer("trunkline.tools")

T = TypeVar("T")

FRESH_FOR = 30.0
"""Seconds after which an entry is read again, in case a change event was lost."""

STALE_FOR = 300.0
"""Seconds for which the last known value is used while memory does not answer."""

WAIT_SECONDS = 60.0
"""Seconds that a call waits while nothing is known and memory does not answer: as long as a call waits for a
tools worker."""

PAUSE = 0.5
"""Seconds between two attempts while memory does not answer."""


class GuardCache(Generic[T]):
    """Caches by name the values that ``read`` returns; call ``open`` before use.

    A change of a file for which ``counts`` is true clears the cache. ``unknown`` is the error text while
    nothing is known.
    """

    def __init__(
        self, bus: Bus, read: Callable[[str], Awaitable[T]], *, counts: Callable[[str], bool], unknown: str
    ) -> None:
        self._cache = MemoryCache(bus, read, counts=counts, fresh_for=FRESH_FOR, stale_for=STALE_FOR)
        self._unknown = unknown
        self.open = self._cache.open
        self.close = self._cache.close
        self.clear = self._cache.clear

    async def get(self, name: str) -> T:
        """Return the value of that name.

        Raises:
            ToolError: the value cannot be read now, or ``read`` reports that it is not valid.
        """
        try:
            return await self._cache.get(name)
        except BusError as error:
            log.error("%s (%s): %s", self._unknown, name, error)
            raise ToolError(f"{self._unknown} Try again later.", kind="unavailable") from error

    async def wait_until_known(self, name: str) -> None:
        """Return when the value is known or memory gave a permanent error, at the latest after ``WAIT_SECONDS``.

        The wait is recorded in a span.
        """
        if await self._is_answered(name):
            return
        log.warning("%s (%s): a call waits for memory", self._unknown, name)
        with start_span(tracer, semconv.WAIT_FOR_MEMORY), anyio.move_on_after(WAIT_SECONDS):
            while not await self._is_answered(name):  # noqa: ASYNC110 - there is no event for memory's return
                await anyio.sleep(PAUSE)

    async def _is_answered(self, name: str) -> bool:
        """Report whether the wait is over: the value is known, or memory gave a permanent error."""
        try:
            await self._cache.get(name)
        except BusError as error:
            return isinstance(error, RemoteFault) and error.code not in TRANSIENT_CODES
        except ToolError:
            return True
        return True
