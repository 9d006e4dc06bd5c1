"""Tracks which files are being written: a file is committed when it has come to rest, so that no partial file
is in history.

A file that never rests, such as a log, is committed now and then in its state at that moment.
"""

import time
from collections.abc import Container
from dataclasses import dataclass

from trunkline_git_store.worktree import FileStat

STABLE_SECONDS = 0.35
"""Seconds between the two looks at least that must find a file alike."""

RECHECK_SECONDS = 0.4
"""Seconds to wait for the second look."""

MAX_UNSTABLE_SECONDS = 60.0
"""Seconds after which a file that never rests is taken in; for a file above a mebibyte as many times that as it has
mebibytes, since each time a copy of it stays in history."""

MEBIBYTE = 1024 * 1024


@dataclass(slots=True)
class _Observation:
    """The observed state of a file (None: it is gone), the time since when it is so and since when it was not
    committed, and whether it is left for a later check."""

    state: FileStat | None
    since: float
    overdue_from: float
    waits: bool = True


class StabilityTracker:
    """Remembers how files looked that differ from what is committed."""

    def __init__(self) -> None:
        self._observations: dict[str, _Observation] = {}

    def observe(self, path: str, state: FileStat | None) -> bool:
        """Note how a file is found now; whether it is to be taken in."""
        now = time.monotonic()
        look = self._observations.setdefault(path, _Observation(state, now, now))
        if look.state != state:
            look.state, look.since = state, now
        look.waits = now - look.since < STABLE_SECONDS
        if look.waits and now - look.overdue_from >= _max_unstable_seconds(state):
            look.waits, look.overdue_from = False, now
        return not look.waits

    def is_being_written(self, path: str) -> bool:
        """Report whether a file was being written when it was last looked at."""
        look = self._observations.get(path)
        return look is not None and time.monotonic() - look.since < STABLE_SECONDS

    def unstable_files(self) -> frozenset[str]:
        """The files that are left for a later look."""
        return frozenset(path for path, look in list(self._observations.items()) if look.waits)

    def forget(self, path: str) -> None:
        """Forget a file whose content is committed."""
        self._observations.pop(path, None)

    def retain(self, *there: Container[str]) -> None:
        """Forget the files that are in none of these: nothing of them is left to take in."""
        for path in list(self._observations):
            if not any(path in paths for paths in there):
                del self._observations[path]


def _max_unstable_seconds(state: FileStat | None) -> float:
    return MAX_UNSTABLE_SECONDS * max(1.0, (state.size if state else 0) / MEBIBYTE)
