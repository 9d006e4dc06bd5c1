"""The files of a running instance in ``run/``: the lock that shows that it runs, and the run file with its address."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from trunkline.errors import TrunklineError
from trunkline.home.paths import Home, storage_errors

LOCK_TRIES = 5


class AlreadyRunning(TrunklineError):
    """Another process runs the platform on this home."""


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the running instance. ``gateway`` is its HTTP address. The file holds the bus password, so its
    mode is 0600.
    """

    pid: int
    started_at: datetime
    url: str
    user: str = ""
    password: str = ""
    gateway: str = ""
    version: str = ""


def run_file_path(home: Home) -> Path:
    """Return the path of the run file."""
    return home.run / "bus.json"


def lock_path(home: Home) -> Path:
    """Return the path of the instance lock."""
    return home.run / "instance.lock"


def write_run_file(home: Home, run: RunFile) -> None:
    """Write the file atomically, with mode 0600. Raises StorageError."""
    target = run_file_path(home)
    draft = target.with_suffix(f".{os.getpid()}")
    with storage_errors(target):
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(run))
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


def read_run_file(home: Home) -> RunFile | None:
    """Return the run file of the running instance; None if no instance runs, even if a crashed instance left a file."""
    try:
        run = msgspec.json.decode(run_file_path(home).read_bytes(), type=RunFile)
    except (OSError, msgspec.DecodeError):
        return None
    return run if run.pid == running_pid(home) else None


def remove_run_file(home: Home) -> None:
    """Remove the file if it exists."""
    run_file_path(home).unlink(missing_ok=True)


@contextmanager
def instance_lock(home: Home) -> Iterator[None]:
    """Hold the instance lock of the home; only one instance can hold it. The kernel releases the lock when the process
    ends.

    Raises:
        AlreadyRunning: another process holds the lock; the text names its pid.
        StorageError: the lock file cannot be written.
    """
    path = lock_path(home)
    with storage_errors(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(file, home)
        with storage_errors(path):
            os.ftruncate(file, 0)
            os.pwrite(file, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(file)


def _take(file: int, home: Home) -> None:
    for _ in range(LOCK_TRIES):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)  # another process may hold the lock only for a check (running_pid)
    pid = _recorded(file)
    raise AlreadyRunning(
        f"Trunkline already runs on {home.path}" + (f" (pid {pid})." if pid else "."),
        hint="Stop it first, or set TRUNKLINE_HOME to run another one beside it.",
    )


def running_pid(home: Home) -> int | None:
    """Return the pid of the process that holds the lock; None if no process does, 0 if the pid is not recorded yet."""
    try:
        file = os.open(lock_path(home), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _recorded(file)
    else:
        return None
    finally:
        os.close(file)


def _recorded(file: int) -> int:
    text = os.pread(file, 32, 0).strip()
    return int(text) if text.isdigit() else 0
