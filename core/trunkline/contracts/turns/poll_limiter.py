"""A limit on how often readers poll the stored feed.

Each reader polls now and then, in case a live item did not reach it. Without the limit, ten thousand readers that
poll every two seconds would take all the time of a worker.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

PER_SECOND = 100
"""The largest number of polls per second of all readers together."""

AT_ONCE = 32
"""The largest number of readers that catch up at once. The others wait, so that other requests are served in between.
"""


class PollLimiter:
    """The polling rate that the readers of one worker or client share."""

    def __init__(self) -> None:
        self._readers = 0
        self.catching_up = anyio.CapacityLimiter(AT_ONCE)
        """A reader holds this limiter while it loads the items stored before it started."""

    @contextmanager
    def counted_reader(self) -> Iterator[None]:
        """Count one more reader within the ``with`` block."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    def interval(self, wished: float) -> float:
        """Return the seconds until a reader may poll again: ``wished``, or longer if there are many readers."""
        return max(wished, self._readers / PER_SECOND)
