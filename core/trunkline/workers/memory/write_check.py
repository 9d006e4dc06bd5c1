"""Checks whether memory can be written: by a test on its disk every few seconds, and from each change that
failed."""

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
"""Bytes that there must be room for: a commit is several files."""

FAILURE_SECONDS = 15.0
"""Seconds for which a change that failed counts, though the disk looks well: who must store tries again sooner."""


class WriteCheck:
    """The check of the folder ``root``. ``problem`` is a sentence with the reason; "" while it can be
    written."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._failed = ""
        self._failed_at = 0.0
        self.problem = ""

    def note(self, failure: str) -> None:
        """A change failed for this reason, or succeeded ("")."""
        self._failed, self._failed_at = failure, anyio.current_time()

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Look again and again, until cancelled. ``changed`` is called when it is otherwise than before."""
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
        """Return why the disk refuses to write. The test file has no name, so it is never taken for a part of
        memory."""
        for folder in (self._root, self._root / ".git" / "objects"):
            if folder is not self._root and not folder.exists():
                continue  # another store than the git store
            try:
                with tempfile.TemporaryFile(dir=folder) as file:
                    _reserve(file.fileno())
            except OSError as error:
                return f"{os.strerror(error.errno or errno.EIO)} ({folder})"
        return ""


def _reserve(handle: int) -> None:
    """Take the room without writing it, where the system can."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, REQUIRED_BYTES)
    else:
        os.write(handle, bytes(REQUIRED_BYTES))
