"""A cache of values from memory that many requests need: read once, and again when memory reports a change."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from trunkline.contracts.memory.messages import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline_bus import Bus, BusError, ReceivedMessage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """A value, and when the read of it began."""

    at: float
    value: T


@dataclass(slots=True)
class _Read(Generic[T]):
    """A read that is under way. ``answer`` and ``error`` are its result; both are None when its reader was cancelled
    and when nobody else may have the result."""

    began: float
    changes: int
    ended: anyio.Event = field(default_factory=anyio.Event)
    answer: _Answer[T] | None = None
    error: Exception | None = None


class MemoryCache(Generic[T]):
    """Answers by name. ``open`` before use.

    An answer is kept for ``fresh_for`` seconds, and no longer than until memory tells of a change of a file that
    ``counts``. Everybody who asks meanwhile shares one read. What ``keeps`` refuses is asked for each time, so what was
    just made is found at once. While memory does not answer, an answer counts for ``stale_for`` seconds, changed or
    not.
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
        """Listen for changes from now on."""
        await self._bus.subscribe(MEMORY_CHANGED, self._changed, limit=1, part="files")
        self._undo = self._bus.on_reconnect(self._reconnected)

    def close(self) -> None:
        """Stop watching for reconnections; the subscription ends with the bus."""
        if self._undo is not None:
            self._undo()

    async def get(self, name: str) -> T:
        """The answer for a name. Raises what asking raises."""
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
        """Something was changed: whoever asks from now on has memory read again."""
        self._changes += 1
        old = anyio.current_time() - self._fresh_for
        self._answers = {
            name: _Answer(min(answer.at, old), answer.value)
            for name, answer in self._answers.items()
            if self._stale_for > self._fresh_for
        }

    async def _read(self, name: str) -> T:
        """Read a name now, or share a read that is as fresh as this caller needs it."""
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
        """Report whether a read began after the last change, and not too long ago."""
        return read.changes == self._changes and anyio.current_time() - read.began < self._fresh_for

    async def _changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        if any(map(self._counts, message.data.paths)):
            self.clear()

    async def _reconnected(self) -> None:
        self.clear()
