"""Ends a program that takes more than it may where neither kernel nor engine bound it: its memory where there is no
control group, and the disk below its workspace.

A thread of its own looks, so that a busy event loop does not blind it. It looks several times a second: between two
looks a program may take more than it may. What cannot be measured is not let go on.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trunkline_sandbox import usage

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
DISK_SECONDS = 0.4
DISK_SHARE = 10
"""A look through a workspace is followed by a pause of so many times its length, unless the disk fills up meanwhile."""

SLACK = 64 * usage.MIB
"""Bytes that a program may add to a workspace over its limit, so that it can clean up."""

LEAST_FREE = 256 * usage.MIB
"""Bytes of the file system below which no program that had more goes on."""

OnExceeded = Callable[["LimitWatcher", str], None]


@dataclass(frozen=True, slots=True)
class WatchedLimits:
    """The watched limits, in bytes: ``memory`` of all processes together, ``disk`` of the whole ``workspace``; None is
    not watched. ``first`` is the program's first process, None where it is not visible from here: then files that were
    removed and are still open are not counted, but they cannot fill the file system."""

    memory: int | None
    disk: int | None
    workspace: Path | None
    first: int | None


class LimitWatcher:
    """Watches one program from its begin to its end. ``end`` is called once, from a thread, with the limit. It may
    block."""

    def __init__(self, bounds: WatchedLimits, end: OnExceeded) -> None:
        self._bounds = bounds
        self._end = end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        if bounds.memory is not None or bounds.disk is not None:
            self._thread.start()

    @property
    def is_running(self) -> bool:
        """Report whether the program has not ended, as far as is known."""
        return not self._over.is_set()

    def stop(self) -> None:
        """The program has ended. Returns when the watcher no longer reads its processes."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            why = self._wait_until_exceeded()
        except OSError as error:
            why = None if self._over.is_set() else "unmeasured"
            if why:
                log.warning("a program is ended, because its resource use cannot be measured: %s", error)
        if why is not None and not self._over.is_set():
            self._end(self, why)

    def _wait_until_exceeded(self) -> str | None:
        memory, first = self._bounds.memory, self._bounds.first
        disk = self._disk()
        while not self._over.wait(POLL_SECONDS):
            if memory is not None and first is not None and usage.memory_bytes(first) > memory:
                return "memory"
            if disk is not None and disk.is_exceeded():
                return "disk"
        return None

    def _disk(self) -> "_DiskUsage | None":
        workspace, most = self._bounds.workspace, self._bounds.disk
        if workspace is None or most is None:
            return None
        return _DiskUsage(workspace, most, self._bounds.first, self._over.is_set)


class _DiskUsage:
    """The disk below a workspace."""

    def __init__(self, workspace: Path, most: int, first: int | None, stopped: Callable[[], bool]) -> None:
        self._workspace, self._first, self._stopped = workspace, first, stopped
        self._free = usage.free_bytes(workspace)
        self._least = LEAST_FREE if self._free > LEAST_FREE else 0
        self._most = most
        self._room = 0
        """Bytes that could be added at the last measurement, and the time of the next one."""
        self._next = 0.0
        self._most = max(most, self._measure() + SLACK)

    def is_exceeded(self) -> bool:
        """Report whether the workspace, or its file system, is fuller than it may be."""
        free = usage.free_bytes(self._workspace)
        if free < self._least:
            return True
        if time.monotonic() < self._next and self._free - free < self._room // 2:
            return False
        self._free = free
        return self._measure() > self._most

    def _measure(self) -> int:
        began = time.monotonic()
        size = usage.disk_bytes(self._workspace, self._first, self._stopped)
        took = time.monotonic() - began
        self._next = time.monotonic() + max(DISK_SECONDS, DISK_SHARE * took)
        self._room = max(SLACK, self._most - size)
        return size
