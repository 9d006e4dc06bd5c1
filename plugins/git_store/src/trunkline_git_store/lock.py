"""The lock of a memory root, held by one process at a time. The kernel releases it when the process ends."""

import fcntl
import os
from pathlib import Path

from trunkline import StorageError


class RootLock:
    """An exclusive lock on a file. ``acquire`` takes it, ``release`` gives it back."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._handle: int | None = None

    def acquire(self, root: Path) -> None:
        """Hold the root.

        Raises:
            StorageError: another process holds it, which the sentence names.
        """
        handle = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            os.close(handle)
            raise StorageError(
                f"Memory cannot start (memory root): {root} is held by another process"
                + (f" (pid {holder})." if holder else "."),
                hint="Stop the other Trunkline, or give this one a memory root of its own.",
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Let go of the root; nothing happens when it is not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def lock_holder(file: Path) -> int | None:
    """The process that holds the lock, if it lives. The pid in the file is read and the lock is not tried, so that a
    worker that starts now is not disturbed."""
    try:
        pid = int(file.read_text(encoding="ascii").strip())
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, ValueError):
        return None
    return pid
