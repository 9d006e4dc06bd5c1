"""What guards read of memory, remembered until memory tells of a change. What cannot be known refuses."""

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
"""Seconds after which what is known is read again, in case a change was missed."""

STALE_FOR = 300.0
"""Seconds for which what was known last still counts while memory does not answer."""

PATIENCE = 60.0
"""Seconds for which a call waits while nothing is known and memory is away: as long as one waits for a tools worker."""

PAUSE = 0.5
"""Seconds between two looks while memory is away."""


class GuardCache(Generic[T]):
    """Answers by name with what ``read`` reads; ``open`` before use.

    A change of a file that ``counts`` has everything read again. ``unknown`` is what is said when nothing is known.
    """

    def __init__(
        self, bus: Bus, read: Callable[[str], Awaitable[T]], *, counts: Callable[[str], bool], unknown: str
    ) -> None:
        self._known = MemoryCache(bus, read, counts=counts, fresh_for=FRESH_FOR, stale_for=STALE_FOR)
        self._unknown = unknown
        self.open = self._known.open
        self.close = self._known.close
        self.clear = self._known.clear

    async def get(self, name: str) -> T:
        """What is known by that name.

        Raises:
            ToolError: it cannot be known now, or ``read`` says that it cannot be used.
        """
        try:
            return await self._known.get(name)
        except BusError as error:
            log.error("%s (%s): %s", self._unknown, name, error)
            raise ToolError(f"{self._unknown} Try again later.", kind="unavailable") from error

    async def wait_until_known(self, name: str) -> None:
        """Return once ``of`` need not refuse because memory is away, or after ``PATIENCE`` seconds: then it refuses.

        The wait is told by a span.
        """
        if await self._is_answered(name):
            return
        log.warning("%s (%s): a call waits for memory", self._unknown, name)
        with start_span(tracer, semconv.WAIT_FOR_MEMORY), anyio.move_on_after(PATIENCE):
            while not await self._is_answered(name):  # noqa: ASYNC110 - nobody tells that memory is back
                await anyio.sleep(PAUSE)

    async def _is_answered(self, name: str) -> bool:
        """Report whether waiting is of no more use: it is known, or memory says why not."""
        try:
            await self._known.get(name)
        except BusError as error:
            return isinstance(error, RemoteFault) and error.code not in TRANSIENT_CODES
        except ToolError:
            return True
        return True
