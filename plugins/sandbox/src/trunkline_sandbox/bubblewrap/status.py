"""The status messages of bubblewrap while a program runs: lines of JSON on a pipe (``bwrap --json-status-fd``)."""

import os

import anyio
import msgspec

LONGEST = 64 * 1024
"""Bytes of it that are read at once; it tells a few hundred."""


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
