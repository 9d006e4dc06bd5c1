"""Checks whether memory can be written: by a test on its disk every few seconds, and from every failed change."""

import errno
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread

log = logging.getLogger(__name__)

CHECK_INTERVAL = 2.0
"""Seconds between two tests."""

REQUIRED_BYTES = 256 * 1024
"""The number of bytes that must be free, because a commit consists of several files."""

FAILURE_SECONDS = 15.0
"""Seconds for which a failed change counts as a problem even if the test of the disk succeeds. A program that must
store its data retries more often than that.
"""


class WriteCheck:
    """Checks whether the folder ``root`` can be written. ``problem`` is a sentence with the reason if not, otherwise
    "".
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._failed = ""
        self._failed_at = 0.0
        self.problem = ""

    def note(self, failure: str) -> None:
        """Record that a change failed, with the reason, or that it succeeded ("")."""
        self._failed, self._failed_at = failure, anyio.current_time()

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Repeat the check until cancelled. ``changed`` is called when ``problem`` changes."""
        while True:
            problem = await anyio.to_thread.run_sync(self._probe_disk) or self._recent_failure()
            if problem != self.problem:
                self.problem = problem
                if problem:
                    log.error("memory cannot be written: %s", problem)
                else:
                    log.warning("memory can be written again")
                await changed()
            await anyio.sleep(CHECK_INTERVAL)

    def _recent_failure(self) -> str:
        return self._failed if anyio.current_time() - self._failed_at < FAILURE_SECONDS else ""

    def _probe_disk(self) -> str:
        """Return why the disk cannot be written; "" if it can. The test file has no name, so it is never part of
        memory.
        """
        for folder in (self._root, self._root / ".git" / "objects"):
            if folder is not self._root and not folder.exists():
                continue  # not the git store
            try:
                with tempfile.TemporaryFile(dir=folder) as file:
                    _reserve(file.fileno())
            except OSError as error:
                return f"{os.strerror(error.errno or errno.EIO)} ({folder})"
        return ""


def _reserve(handle: int) -> None:
    """Allocate the bytes without writing them, if the system supports that."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, REQUIRED_BYTES)
    else:
        os.write(handle, bytes(REQUIRED_BYTES))
