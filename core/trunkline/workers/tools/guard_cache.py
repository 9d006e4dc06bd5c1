"""What guards read of memory, remembered until memory tells of a change. What cannot be known refuses."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, NoReturn, TypeVar

import anyio
from opentelemetry import trace

from trunkline.contracts.memory.messages import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.errors import TRANSIENT_CODES, ToolError
from trunkline.telemetry import semconv
from trunkline_bus import Bus, BusError, ReceivedMessage, RemoteFault, start_span

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


@dataclass(slots=True)
class _Reading(Generic[T]):
    """A read under way, which all share who ask before the next change. ``outcome`` gives what it found or raises what
    it raised; None when its reader was cancelled."""

    changes: int
    ended: anyio.Event = field(default_factory=anyio.Event)
    outcome: Callable[[], T] | None = None


class GuardCache(Generic[T]):
    """Answers by name with what ``read`` reads, once however many ask at a time. ``open`` before use.

    A change of a file that ``counts`` has everything read again. ``unknown`` is what is said when nothing is known.
    """

    def __init__(
        self, bus: Bus, read: Callable[[str], Awaitable[T]], *, counts: Callable[[str], bool], unknown: str
    ) -> None:
        self._bus = bus
        self._read = read
        self._counts = counts
        self._unknown = unknown
        self._known: dict[str, tuple[float, T]] = {}
        self._reading: dict[str, _Reading[T]] = {}
        self._changes = 0
        self._undo: Callable[[], None] | None = None

    async def open(self) -> None:
        """Listen for changes from now on."""
        await self._bus.subscribe(MEMORY_CHANGED, self._changed, limit=1, part="files")
        self._undo = self._bus.on_reconnect(self.invalidate)

    def close(self) -> None:
        """Stop watching for reconnections; the subscription ends with the bus."""
        if self._undo is not None:
            self._undo()

    async def get(self, name: str) -> T:
        """What is known by that name.

        Raises:
            ToolError: it cannot be known now, or ``read`` says that it cannot be used.
        """
        try:
            return await self._usable(name)
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
            await self._usable(name)
        except BusError as error:
            return isinstance(error, RemoteFault) and error.code not in TRANSIENT_CODES
        except ToolError:
            return True
        return True

    async def _usable(self, name: str) -> T:
        """What is known and may still be used, else what is read. Raises BusError and ToolError."""
        at, known = self._known.get(name, (-STALE_FOR, None))
        age = anyio.current_time() - at
        if known is not None and age < FRESH_FOR:
            return known
        try:
            return await self._shared(name)
        except BusError:
            if known is not None and age < STALE_FOR:
                return known
            raise

    async def _shared(self, name: str) -> T:
        """What is read now. Who asks after a change does not join a read that began before it."""
        while (reading := self._reading.get(name)) is not None and reading.changes == self._changes:
            await reading.ended.wait()
            if reading.outcome is not None:
                return reading.outcome()
        reading = self._reading[name] = _Reading(self._changes)
        try:
            found = await self._read(name)
        except (BusError, ToolError) as error:
            reading.outcome = partial(_raised, error)
            raise
        else:
            reading.outcome = partial(_found, found)
        finally:
            if self._reading.get(name) is reading:
                del self._reading[name]
            reading.ended.set()
        if reading.changes == self._changes:
            self._known[name] = (anyio.current_time(), found)
        return found

    async def _changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        if any(map(self._counts, message.data.paths)):
            await self.invalidate()

    async def invalidate(self) -> None:
        """Look again at the next use; what was known stays usable while memory does not answer."""
        self._changes += 1
        now = anyio.current_time()
        self._known = {name: (min(at, now - FRESH_FOR), found) for name, (at, found) in self._known.items()}


def _found(found: T) -> T:
    return found


def _raised(error: Exception) -> NoReturn:
    raise error
