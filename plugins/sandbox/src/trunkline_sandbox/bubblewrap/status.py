"""The state of a sandbox, seen from outside: bubblewrap's status messages, which are lines of JSON on a pipe (``bwrap
--json-status-fd``), and whether its network and mounts are made."""

import os

import anyio
import msgspec

from trunkline_sandbox.bubblewrap.file_masker import EMPTY_PLACE

LONGEST = 64 * 1024
"""Bytes of it that are read at once; it tells a few hundred."""

PAUSE_SECONDS = 0.002


class _StatusMessage(msgspec.Struct, frozen=True, rename="kebab"):
    child_pid: int | None = None
    exit_code: int | None = None


class StatusPipe:
    """The reading end of the pipe. Close it in the end."""

    def __init__(self, handle: int) -> None:
        os.set_blocking(handle, False)
        self._handle = handle
        self._rest = b""

    async def child(self) -> int | None:
        """The process that is the first in the sandbox; None when bubblewrap ended before there was one."""
        while b"\n" not in self._rest:
            await anyio.wait_readable(self._handle)
            piece = os.read(self._handle, LONGEST)
            if not piece:
                return None
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(line, type=_StatusMessage).child_pid

    def exit_code(self) -> int | None:
        """Return the exit code of the program once bubblewrap has ended; None when it never started, or was killed with
        bubblewrap."""
        try:
            while piece := os.read(self._handle, LONGEST):
                self._rest += piece
        except BlockingIOError:  # somebody has inherited the other end; all that was told is here
            pass
        reports = [
            msgspec.json.decode(line, type=_StatusMessage) for line in self._rest.splitlines() if line.strip()
        ]
        return next((one.exit_code for one in reports if one.exit_code is not None), None)

    def close(self) -> None:
        """Read no more."""
        os.close(self._handle)


async def wait_until_made(first: int) -> bool:
    """Wait until the network and the mounts of a sandbox are made; False if its first process ends before.

    bubblewrap tells the number of the process before that, and does not tell when it is done. It makes the network
    first and the mounts next, and then unmounts its scaffolding. Whoever enters earlier makes it fail: slirp4netns
    gives an address to the loopback device, and bubblewrap ends when there is one already.
    """
    mounts = anyio.Path(f"/proc/{first}/mountinfo")
    while True:
        try:
            places = {line.split()[4] for line in (await mounts.read_text()).splitlines()}
        except OSError:
            return False
        if EMPTY_PLACE in places and not any(place.startswith(("/newroot", "/oldroot")) for place in places):
            return True
        await anyio.sleep(PAUSE_SECONDS)
