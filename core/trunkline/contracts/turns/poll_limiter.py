"""A limit on how often many readers poll what is stored. Each looks now and then, in case something did not reach
it live; ten thousand that all did so every two seconds would leave a worker no time for anything else.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

PER_SECOND = 100
"""How many looks all readers together take in a second, at most."""

AT_ONCE = 32
"""How many readers may catch up at once; the others wait for their turn, and other requests come in between."""


class PollLimiter:
    """The rate that the readers of one worker or client share."""

    def __init__(self) -> None:
        self._readers = 0
        self.catching_up = anyio.CapacityLimiter(AT_ONCE)
        """To be held while a reader takes in what came before it."""

    @contextmanager
    def counted_reader(self) -> Iterator[None]:
        """Count one more reader for the length of the block."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    def interval(self, wished: float) -> float:
        """Seconds until a reader may look again: longer than it asked for where there are very many."""
        return max(wished, self._readers / PER_SECOND)
