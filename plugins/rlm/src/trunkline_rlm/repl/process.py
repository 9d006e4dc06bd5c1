"""The process of one session: begun in the sandbox, spoken with in frames, ended with all that belongs to it."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from trunkline import Sandbox, SandboxLimits, ToolError
from trunkline.api.sandbox import SandboxProcess
from trunkline.api.seccomp import ARCHITECTURES, encode_filter
from trunkline_rlm.repl import frames
from trunkline_rlm.repl.frames import Frame, HostileFrameError, ReadyFrame, RefusedFrame
from trunkline_rlm.repl.seccomp_filter import filter_program

PACKAGE = Path(__file__).parents[1]
MOUNT_PATH = f"/opt/{PACKAGE.name}"
"""The path of this package in the sandbox, of which only ``repl/inside`` is used."""

START_SECONDS = 20.0
SEND_SECONDS = 10.0
"""Seconds that a process may leave a message in its pipe unread. Our child reads at once; a hijacked one may not."""

INTERPRETER_MIB = 64
"""MiB that the interpreter takes itself, with all its modules; the code's memory comes on top."""

MIB = 1024 * 1024


START_SCRIPT = '"$@"; code=$?; case $code in 126|127) shift; exec python3 "$@";; esac; exit $code'
"""For ``sh``: the first program, or ``python3`` where it is not there or made for another system, such as in an image.
Their libraries are not needed."""

SYSTEM_FOLDER = Path("/usr")
"""Folders below these exist in every sandbox, or the sandbox has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplLimits:
    """The limits for code. Seconds of computing for each run; bytes of memory besides the interpreter's own; seconds of
    processor time and characters of output for the whole session; calls of the host's functions for each run."""

    timeout: float = 60.0
    memory: int = 128 * MIB
    cpu_seconds: int = 600
    output: int = 10_000_000
    calls: int = 1_000


class ProcessEndedError(Exception):
    """The process has ended: by itself, or because it was ended."""


class ReplProcess:
    """A confined process. ``start_process`` returns one."""

    def __init__(self, process: SandboxProcess) -> None:
        self._process = process
        self._in = BufferedByteReceiveStream(process.stdout)

    async def send(self, kind: str, *fields: Any) -> None:
        """Send a frame. Raises ProcessEndedError, and ValueError or TypeError for what no frame can carry."""
        data = frames.encode_frame(kind, *fields)
        try:
            with anyio.fail_after(SEND_SECONDS):
                await self._process.stdin.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:  # TimeoutError too
            raise ProcessEndedError("the process has ended") from error

    async def receive(self) -> Frame:
        """The next frame. Raises ProcessEndedError, and HostileFrameError for what is no frame."""
        try:
            size = frames.frame_length(await self._in.receive_exactly(4))
            return frames.decode_frame(await self._in.receive_exactly(size))
        except (
            anyio.IncompleteRead,
            anyio.EndOfStream,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ) as error:
            raise ProcessEndedError("the process has ended") from error

    async def read_stderr(self) -> str:
        """The last words of a process that did not begin: what stands on its standard error."""
        words = b""
        with anyio.move_on_after(1.0):
            try:
                while len(words) < 1_000:
                    words += await self._process.stderr.receive(1_000)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
        return words.decode(errors="replace").strip()

    async def end(self) -> None:
        """Kill it with all that it began, and wait until it is gone."""
        await self._process.__aexit__(None, None, None)


async def start_process(sandbox: Sandbox, functions: Sequence[str], limits: ReplLimits) -> ReplProcess:
    """Start a confined process with these host functions. It has no workspace and no network, and can read only the
    system and this package.

    Raises:
        ToolError: there is no sandbox, or no Python in it, or the process could not shut itself in besides.
    """
    process = ReplProcess(
        await sandbox.start(
            python_command(f"{MOUNT_PATH}/repl/child/main.py"),
            workspace=None,
            env={},
            read_only={MOUNT_PATH: PACKAGE, **runtime_mounts()},
            limits=SandboxLimits(memory=-(-limits.memory // MIB) + INTERPRETER_MIB),
        )
    )
    try:
        reason = await _start_failure(process, functions, limits)
        if reason is None:
            return process
    except BaseException:
        await process.end()
        raise
    await process.end()
    raise ToolError(f"No code was run, because its process cannot be confined: {reason}.", kind="unsupported")


async def _start_failure(process: ReplProcess, functions: Sequence[str], limits: ReplLimits) -> str | None:
    """Tell the process what it is to be. Why it cannot; None when it is ready."""
    filters = {machine: encode_filter(filter_program(machine)).hex() for machine in ARCHITECTURES}
    try:
        with anyio.fail_after(START_SECONDS):
            await process.send(
                "begin", limits.memory, limits.cpu_seconds, limits.output, list(functions), filters
            )
            first = await process.receive()
    except TimeoutError:
        return "it did not start in time"
    except HostileFrameError as error:
        return str(error)
    except ProcessEndedError:
        said = await process.read_stderr()
        return f"it ended at once; it said: {said or 'nothing'}"
    if isinstance(first, ReadyFrame):
        return None
    return first.reason if isinstance(first, RefusedFrame) else "its first frame was of another kind"


def python_command(program: str) -> tuple[str, ...]:
    """The argument vector of a Python, without surroundings and libraries, that runs a program."""
    return "sh", "-c", START_SCRIPT, "sh", own_interpreter(), "-I", "-S", "-B", program


def own_interpreter() -> str:
    """This interpreter, behind all links and environments."""
    return os.path.realpath(sys.executable) if sys.platform == "linux" else "python3"


def runtime_mounts() -> dict[str, Path]:
    """Return the folders that the sandbox needs for ``own_interpreter``, where it is outside the system's folders."""
    base = Path(os.path.realpath(sys.base_prefix))
    inside = base.is_relative_to(SYSTEM_FOLDER) or base == Path("/")
    if sys.platform != "linux" or inside or not Path(own_interpreter()).is_relative_to(base):
        return {}
    return {str(base): base}
