"""A network of its own for a program, which leads to other hosts and not to what listens on this machine's loopback.

slirp4netns is a small TCP/IP stack in a process of this user: it answers for the one device of the program's network
namespace, and makes what comes out of it ordinary connections. Nobody needs to be root.
"""

import fcntl
import os
import resource
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
from anyio.abc import Process

from trunkline import ToolError

MISSING = (
    "A program with a network needs slirp4netns, and it is not installed (Debian and Ubuntu: apt install slirp4netns; "
    "Fedora: dnf install slirp4netns). Nothing was run. A person can lend this machine's own network instead, with all "
    "that listens on it, for some minutes: trunkline permissions BLOCK --host-network 30"
)
RESOLVER = "10.0.2.3"
"""The address at which slirp4netns resolves names, with this machine's own resolvers."""

LOOPBACK_BLOCKER = Path(__file__).with_name("loopback_blocker.py")

FILES = 1024
"""Connections that it may have at once, each with its buffers: what the program opens it opens too, outside of its
limits."""

NS_GET_USERNS = 0xB701
READY_SECONDS = 10.0


class Uplink:
    """A slirp4netns that runs. It ends with ``aclose``, and with this process however that ends."""

    def __init__(self, process: Process, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline

    async def aclose(self) -> None:
        """End it; done when it is gone."""
        os.close(self._lifeline)
        with suppress(ProcessLookupError):
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.wait()


async def start_uplink(first: int) -> Uplink:
    """Give the network namespace of a process a way out.

    Args:
        first: The process, which has begun no program yet.

    Raises:
        ToolError: slirp4netns is not installed, or failed.
    """
    executable = shutil.which("slirp4netns")
    if executable is None:
        raise ToolError(MISSING, kind="unsupported")
    with ExitStack() as theirs, ExitStack() as ours:
        network = _close_later(theirs, os.open(f"/proc/{first}/ns/net", os.O_RDONLY))
        users = _close_later(theirs, fcntl.ioctl(network, NS_GET_USERNS))
        ready, ready_write = os.pipe()
        _close_later(ours, ready)
        _close_later(theirs, ready_write)
        exit_read, lifeline = os.pipe()
        _close_later(theirs, exit_read)
        _close_later(ours, lifeline)
        process = await anyio.open_process(
            [
                executable, "--configure", "--mtu=65520", "--disable-host-loopback", "--enable-seccomp",
                f"--ready-fd={ready_write}", f"--exit-fd={exit_read}", "--netns-type=path",
                f"--userns-path=/proc/self/fd/{users}", f"/proc/self/fd/{network}", "tap0",
            ],
            pass_fds=(network, users, ready_write, exit_read),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
        )  # fmt: skip
        theirs.close()
        uplink = Uplink(process, lifeline)
        try:
            _limit_open_files(process.pid)
            await _wait_until_ready(ready)
            await _block_loopback(first)
        except BaseException:
            ours.pop_all()
            os.close(ready)
            await uplink.aclose()
            raise
        ours.pop_all()
        os.close(ready)
        return uplink


async def _wait_until_ready(handle: int) -> None:
    with anyio.move_on_after(READY_SECONDS):
        await anyio.wait_readable(handle)
        if os.read(handle, 1):
            return
    raise ToolError(
        "The program's network could not be created: slirp4netns failed. Nothing was run.", kind="unavailable"
    )


async def _block_loopback(first: int) -> None:
    """Let nothing that is meant for loopback out of the network of a process. Raises ToolError."""
    command = (sys.executable, "-I", "-S", "-B", str(LOOPBACK_BLOCKER), str(first))
    done = await anyio.run_process(command, check=False, env={}, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ToolError(
            f"The program's network could not be confined, so nothing was run: {' '.join(said)}",
            kind="unavailable",
        )


def _limit_open_files(process: int) -> None:
    with suppress(ProcessLookupError):  # that it failed is told as soon as it is waited for
        allowed = resource.prlimit(process, resource.RLIMIT_NOFILE)[1]
        bound = FILES if allowed == resource.RLIM_INFINITY else min(FILES, allowed)
        resource.prlimit(process, resource.RLIMIT_NOFILE, (bound, bound))


def _close_later(stack: ExitStack, handle: int) -> int:
    stack.callback(os.close, handle)
    return handle
