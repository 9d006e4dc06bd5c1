"""A cache of values from memory that many requests need: read once, and again when memory reports a change."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from trunkline.contracts.memory.messages import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline_bus import Bus, ReceivedMessage

T = TypeVar("T")


class MemoryCache(Generic[T]):
    """Answers by name. ``open`` before use.

    An answer is kept for ``fresh_for`` seconds, and no longer than until memory tells of a change of a file that
    ``counts``. What ``keeps`` refuses is asked for each time, so what was just made is found at once.
    """

    def __init__(
        self,
        bus: Bus,
        ask: Callable[[str], Awaitable[T]],
        *,
        counts: Callable[[str], bool],
        fresh_for: float,
        keeps: Callable[[T], bool] = lambda answer: answer is not None,
    ) -> None:
        self._bus = bus
        self._ask = ask
        self._counts = counts
        self._fresh_for = fresh_for
        self._keeps = keeps
        self._answers: dict[str, tuple[float, T]] = {}
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
        found = self._answers.get(name)
        if found is not None and anyio.current_time() - found[0] < self._fresh_for:
            return found[1]
        changes, began = self._changes, anyio.current_time()
        answer = await self._ask(name)
        if self._keeps(answer) and changes == self._changes:
            self._answers[name] = (began, answer)
        return answer

    def clear(self) -> None:
        """Something was changed: nothing that is known counts any more."""
        self._changes += 1
        self._answers.clear()

    async def _changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        if any(map(self._counts, message.data.paths)):
            self.clear()

    async def _reconnected(self) -> None:
        self.clear()
