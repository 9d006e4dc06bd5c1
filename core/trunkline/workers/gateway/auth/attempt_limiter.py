"""Limits how often something may be tried within a time, by name. Kept in main memory."""

import time
from collections.abc import Callable


class AttemptLimiter:
    """Permits ``most`` attempts of each name within ``seconds``. Whoever calls it bounds the number of names."""

    def __init__(self, most: int, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._now = now
        self._times: dict[str, list[float]] = {}

    def permits(self, name: str) -> bool:
        """Report whether this attempt is permitted, and count it if it is."""
        now = self._now()
        times = [one for one in self._times.get(name, ()) if one > now - self._seconds]
        permitted = len(times) < self._most
        self._times[name] = [*times, now] if permitted else times
        return permitted
