"""A cache of values that are read from memory. A value is read once, and again after memory reports a change."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline_bus import Bus, BusError, ReceivedMessage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """A value, and the time when its read began."""

    at: float
    value: T


@dataclass(slots=True)
class _Read(Generic[T]):
    """A read that is running.

    ``answer`` and ``error`` are its result. Both are None if the read was cancelled, or if its value must not be
    shared.
    """

    began: float
    changes: int
    ended: anyio.Event = field(default_factory=anyio.Event)
    answer: _Answer[T] | None = None
    error: Exception | None = None


class MemoryCache(Generic[T]):
    """Cached values by name. Call ``open`` before use.

    A value is used for ``fresh_for`` seconds at most, and only until memory reports a change of a file for which
    ``counts`` is True. Concurrent requests share one read. A value for which ``keeps`` is False is not cached, so that
    a file that was just created is found at once. While memory does not answer, a value is used for ``stale_for``
    seconds, even if it has changed.
    """

    def __init__(
        self,
        bus: Bus,
        ask: Callable[[str], Awaitable[T]],
        *,
        counts: Callable[[str], bool],
        fresh_for: float,
        stale_for: float = 0.0,
        keeps: Callable[[T], bool] = lambda answer: answer is not None,
    ) -> None:
        self._bus = bus
        self._ask = ask
        self._counts = counts
        self._fresh_for = fresh_for
        self._stale_for = stale_for
        self._keeps = keeps
        self._answers: dict[str, _Answer[T]] = {}
        self._reads: dict[str, _Read[T]] = {}
        self._changes = 0
        self._undo: Callable[[], None] | None = None

    async def open(self) -> None:
        """Subscribe to changes of memory."""
        await self._bus.subscribe(MEMORY_CHANGED, self._changed, limit=1, part="files")
        self._undo = self._bus.on_reconnect(self._reconnected)

    def close(self) -> None:
        """Stop watching for reconnections; the subscription ends with the bus."""
        if self._undo is not None:
            self._undo()

    async def get(self, name: str) -> T:
        """Return the value of a name. Raises what ``ask`` raises."""
        known = self._answers.get(name)
        age = anyio.current_time() - known.at if known is not None else 0.0
        if known is not None and age < self._fresh_for:
            return known.value
        try:
            return await self._read(name)
        except BusError:
            if known is not None and age < self._stale_for:
                return known.value
            raise

    def clear(self) -> None:
        """Mark all values as outdated: the next request for each reads memory again."""
        self._changes += 1
        old = anyio.current_time() - self._fresh_for
        self._answers = {
            name: _Answer(min(answer.at, old), answer.value)
            for name, answer in self._answers.items()
            if self._stale_for > self._fresh_for
        }

    async def _read(self, name: str) -> T:
        """Read a value, or share a running read that is recent enough."""
        read = self._reads.get(name)
        if read is not None and self._is_shared(read):
            await read.ended.wait()
            if read.error is not None:
                raise read.error
            if read.answer is not None:
                return read.answer.value
        read = self._reads[name] = _Read(anyio.current_time(), self._changes)
        try:
            value = await self._ask(name)
        except Exception as error:
            read.error = error
            raise
        else:
            answer = _Answer(read.began, value)
            if self._keeps(value):
                read.answer = answer
                if read.changes == self._changes:
                    self._answers[name] = answer
            return value
        finally:
            if self._reads.get(name) is read:
                del self._reads[name]
            read.ended.set()

    def _is_shared(self, read: _Read[T]) -> bool:
        """Report whether a read began after the last change and less than ``fresh_for`` seconds ago."""
        return read.changes == self._changes and anyio.current_time() - read.began < self._fresh_for

    async def _changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        if any(map(self._counts, message.data.paths)):
            self.clear()

    async def _reconnected(self) -> None:
        self.clear()
