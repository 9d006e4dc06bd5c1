"""A log that many sockets read, each at its own speed. Old entries are dropped, so a slow reader costs no memory."""

from collections import deque
from typing import Generic, Protocol, TypeVar

import anyio

MAX_ENTRIES, MAX_CHARACTERS = 1_024, 1_000_000
"""The largest number of entries that a log keeps, and of their characters."""


class Sized(Protocol):
    """An entry of a log."""

    @property
    def size(self) -> int:
        """The number of characters."""
        ...


T = TypeVar("T", bound=Sized)


class ReaderBehind(Exception):
    """Raised if an entry was dropped before the reader took it."""


class BoundedLog(Generic[T]):
    """Entries, numbered from 0. ``begin`` is the number of the oldest one that is kept."""

    def __init__(self) -> None:
        self.begin = 0
        self._entries: deque[T] = deque()
        self._characters = 0
        self._failure: Exception | None = None
        self._changed = anyio.Event()

    @property
    def end(self) -> int:
        """The number that the next entry will have."""
        return self.begin + len(self._entries)

    def append(self, entry: T) -> None:
        """Add an entry, and drop old ones that are too many."""
        self._entries.append(entry)
        self._characters += entry.size
        while len(self._entries) > 1 and self._is_full():
            self._drop(self._entries.popleft())
        self._wake()

    def fail(self, error: Exception) -> None:
        """End the log: readers get the remaining entries, then the error."""
        self._failure = error
        self._wake()

    async def read(self, number: int) -> T:
        """Return an entry, and wait for it if it is not there yet.

        Raises ReaderBehind if it was dropped, and the error of ``fail`` if it will never come.
        """
        while number >= self.end:
            if self._failure is not None:
                raise self._failure
            await self._changed.wait()
        if number < self.begin:
            raise ReaderBehind
        return self._entries[number - self.begin]

    def _is_full(self) -> bool:
        return len(self._entries) > MAX_ENTRIES or self._characters > MAX_CHARACTERS

    def _drop(self, entry: T) -> None:
        self.begin += 1
        self._characters -= entry.size

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
