"""Bringing what was written onto the disk: many files at once, because waiting one after the other is slow."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

WORKERS = 16


class Syncer:
    """Syncs files and folders in parallel threads, or leaves it to the system when not ``enabled``. Close it when
    done."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="memory-sync")

    def sync(self, paths: Iterable[str]) -> None:
        """Return when all files and folders are on disk. A path that does not exist is skipped.

        Raises:
            OSError: the disk refused.
        """
        if not self._enabled:
            return
        wanted = list(paths)
        shares = [wanted[first::WORKERS] for first in range(min(WORKERS, len(wanted)))]
        others = self._pool.map(_sync_all, shares[1:])
        _sync_all(shares[0] if shares else [])
        for _ in others:
            pass

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _sync_all(paths: list[str]) -> None:
    for path in paths:
        _sync(path)


def _sync(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
