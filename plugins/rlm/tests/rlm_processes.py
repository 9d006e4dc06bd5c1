"""The processes of sessions, seen from outside of the sandbox."""

from contextlib import suppress

import anyio
import psutil

from trunkline_rlm.repl.process import MOUNT_PATH


def begun_by(worker: int | None = None) -> list[psutil.Process]:
    """Return every process that runs in a sandbox of a session and was started by a process, this one by default."""
    found = []
    for child in psutil.Process(worker).children(recursive=True):
        with suppress(psutil.Error):
            found += [child] if any(MOUNT_PATH in word for word in child.cmdline()) else []
    return found


async def none_left(processes: list[psutil.Process], seconds: float = 60.0) -> None:
    """Wait until none of these runs any more."""
    with anyio.fail_after(seconds):
        while any(map(is_running, processes)):  # noqa: ASYNC110  they are no children of ours
            await anyio.sleep(0.02)


def is_running(process: psutil.Process) -> bool:
    """Report whether the process runs; a zombie does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
