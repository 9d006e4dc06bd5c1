"""The process of one session: begun shut in, spoken with in frames, ended with all that belongs to it."""

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.abc import Process as RawProcess
from anyio.streams.buffered import BufferedByteReceiveStream

from trunkline.seccomp import ARCHITECTURES, encoded
from trunkline_rlm.repl import frames
from trunkline_rlm.repl.filter import program
from trunkline_rlm.repl.frames import Frame, Hostile, Ready, Refused

PROGRAM = Path(__file__).parent / "inside" / "main.py"
START_SECONDS = 20.0
SEND_SECONDS = 10.0
"""How long a process may leave what it is sent in the pipe: ours waits for it, one that was taken over need not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What code may take. Seconds of computing for each run, bytes of memory besides the interpreter's own, seconds of
    processor time and characters of output for the whole session, and calls of the host's functions for each run."""

    timeout: float = 60.0
    memory: int = 128 * 1024 * 1024
    cpu_seconds: int = 600
    output: int = 10_000_000
    calls: int = 1_000


NO_FILTER = "No code is run, because there is no filter of system calls for {}."


class CannotConfine(Exception):
    """On this machine no process can be shut in, so no code is run."""


class Ended(Exception):
    """The process has ended: by itself, or because it was ended."""


class Confined:
    """A process that is shut in. Get it from ``begun``."""

    def __init__(self, process: RawProcess) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.pid = process.pid
        self.apart = False
        """Whether it has namespaces of its own, besides the filter of system calls."""
        self._process = process
        self._out: ByteSendStream = process.stdin
        self._raw: ByteReceiveStream = process.stdout
        self._in = BufferedByteReceiveStream(process.stdout)

    async def send(self, kind: str, *fields: Any) -> None:
        """Send a frame. Raises Ended, and ValueError or TypeError for what no frame can carry."""
        data = frames.encoded(kind, *fields)
        try:
            with anyio.fail_after(SEND_SECONDS):
                await self._out.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:  # TimeoutError too
            raise Ended("the process is gone") from error

    async def receive(self) -> Frame:
        """The next frame. Raises Ended, and Hostile for what is no frame."""
        try:
            size = frames.length(await self._in.receive_exactly(4))
            return frames.decoded(await self._in.receive_exactly(size))
        except (
            anyio.IncompleteRead,
            anyio.EndOfStream,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ) as error:
            raise Ended("the process is gone") from error

    async def end(self) -> None:
        """Kill it and its whole process group, and wait until it is gone."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await self._process.wait()
            await self._out.aclose()
            await self._raw.aclose()


async def begun(functions: Sequence[str], limits: Limits) -> Confined:
    """A new process that has shut itself in, with these functions of the host.

    Raises:
        CannotConfine: it could not shut itself in.
    """
    if sys.platform != "linux" or platform.machine() not in ARCHITECTURES:
        raise CannotConfine(NO_FILTER.format(f"{platform.system()} on {platform.machine()}"))
    code = encoded(program(platform.machine())).hex()
    numbers = (os.getpid(), limits.memory, limits.cpu_seconds, limits.output)
    command = [sys.executable, "-I", "-S", "-B", str(PROGRAM), *map(str, numbers), code, *functions]
    raw = await anyio.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    process = Confined(raw)
    try:
        with anyio.fail_after(START_SECONDS):
            first = await process.receive()
        if isinstance(first, Ready):
            process.apart = first.apart
            return process
        reason = first.reason if isinstance(first, Refused) else "it said something else first"
    except (Ended, Hostile, TimeoutError) as error:
        reason = str(error) or "it did not begin in time"
    except BaseException:
        await process.end()
        raise
    await process.end()
    raise CannotConfine(f"No code is run, because its process cannot be shut in on this machine: {reason}.")
