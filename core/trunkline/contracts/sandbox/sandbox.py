"""Where programs run. Without a sandbox, tools with the effect ``exec`` are refused: there is no silent downgrade.

A backend brings ``start``; ``run``, which waits for the end and gives what was printed, is built upon it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from trunkline._util.batch import batched
from trunkline.contracts.sandbox.bounded_output import BoundedOutput, read_into
from trunkline.errors import ToolError

WORKSPACE = "/workspace"
"""Where a program finds the block's workspace, in every sandbox."""

READ_SIZE = 64 * 1024

LEFTOVER_SECONDS = 2.0

_OVER = (
    anyio.EndOfStream,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.BusyResourceError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of one run: seconds, MiB, CPUs, processes, bytes of output per stream; whether it has a network, and
    whether it may write in the workspace (its ``/tmp`` it always may).

    ``network`` is one that leads to other hosts, not to what listens on this machine's loopback. With ``host_network``
    it is this machine's own: the bus, the gateway and every other service that trusts who is here are within reach.

    ``repository`` is the one bare git repository that it may change, by its path in the workspace: no program changes
    any other, so none changes what was pushed there.

    ``timeout`` and ``output`` are kept by ``run``. A program of ``start`` lives until whoever began it ends it, and its
    output waits in a pipe until it is read.
    """

    timeout: float = 30.0
    memory: int = 512
    cpus: float = 1.0
    processes: int = 64
    output: int = 1_000_000
    network: bool = False
    host_network: bool = False
    writable: bool = True
    repository: str = ""


DEFAULT_LIMITS = SandboxLimits()
"""What a program may take when nothing else is said."""


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """The result of a program. ``exit_code`` is None when it was killed, and ``killed`` says at which limit:
    ``timeout``, ``memory``, ``disk``, ``unmeasured`` (what it took could not be seen), or ``panic``. Of output
    beyond its limit the beginning and the end are there, with a line between them; ``dropped`` is how many bytes
    are not.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    seconds: float
    killed: str = ""
    dropped: int = 0


class SandboxProcess(ABC):
    """A program that runs. As a context manager it leaves nothing running: whatever it began ends with it.

    ``killed`` says, once it has ended, which limit or request ended it; "" when it ended by itself. Closing ``stdin``
    tells the program that there is no more.
    """

    stdin: ByteSendStream
    stdout: ByteReceiveStream
    stderr: ByteReceiveStream
    killed: str = ""

    @abstractmethod
    async def wait(self) -> int | None:
        """Wait until the program has ended, and with it all that it began. Its exit code (128 and the number of the
        signal that ended it); None when it was killed.

        Raises:
            ToolError: it never began, because the sandbox could not be made.
        """

    @abstractmethod
    async def kill(self, why: str = "killed") -> None:
        """End the program and all that it began, now; done when they are gone. Once it has ended, nothing happens."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.kill()
            for output in (self.stdout, self.stderr):
                await _emptied(output)
            for stream in (self.stdin, self.stdout, self.stderr):
                with suppress(anyio.BrokenResourceError):
                    await stream.aclose()


class Sandbox(ABC):
    """A backend that isolates a program by the operating system."""

    name: str

    @abstractmethod
    async def unavailable(self) -> str | None:
        """None when it can be used here, else the sentence that says what to install or permit."""

    @abstractmethod
    async def start(
        self,
        argv: Sequence[str],
        *,
        workspace: Path | None,
        env: Mapping[str, str],
        folder: str = "",
        read_only: Mapping[str, Path] | None = None,
        limits: SandboxLimits = DEFAULT_LIMITS,
        label: str = "",
    ) -> SandboxProcess:
        """Begin a program; use what is given as ``async with``.

        Args:
            argv: The program and its arguments; no shell reads them. A program that is not found exits with 127.
            workspace: The one folder it may write, unless the limits say otherwise, which it finds as ``/workspace``.
                Files with protected names in it are empty for the program, and so are settings of git that hold a
                password; bare repositories in it are read-only. None: it only computes, and ``/workspace`` is empty
                and cannot be written.
            env: Its environment; nothing is inherited. Without them, ``PATH``, ``HOME`` and ``LANG`` are added.
            folder: Where in the workspace it begins.
            read_only: Further files and folders: the place where it finds each, and the path here.
            limits: What it may take.
            label: What it is for, as people see it among the processes.

        Raises:
            ToolError: the sandbox cannot be used, or something of the above cannot be given to a program.
        """

    async def run(
        self,
        argv: Sequence[str],
        *,
        workspace: Path | None,
        env: Mapping[str, str],
        folder: str = "",
        read_only: Mapping[str, Path] | None = None,
        stdin: bytes = b"",
        limits: SandboxLimits = DEFAULT_LIMITS,
        label: str = "",
    ) -> SandboxResult:
        """Run a program to its end, or to its time limit; what it printed until then is there in either case.

        Raises:
            ToolError: as for ``start``.
        """
        began = anyio.current_time()
        process = await self.start(
            argv, workspace=workspace, env=env, folder=folder, read_only=read_only, limits=limits, label=label
        )
        async with process:
            out, err = BoundedOutput(limits.output), BoundedOutput(limits.output)
            code = await _to_its_end(process, stdin, limits.timeout, out, err)
            return SandboxResult(
                stdout=out.content(),
                stderr=err.content(),
                exit_code=code,
                seconds=anyio.current_time() - began,
                killed=process.killed,
                dropped=out.dropped + err.dropped,
            )

    async def leave(
        self,
        argv: Sequence[str],
        *,
        record: Path,
        workspace: Path,
        env: Mapping[str, str],
        folder: str = "",
        limits: SandboxLimits = DEFAULT_LIMITS,
        label: str = "",
    ) -> None:
        """Begin a program that goes on when the worker ends, however that ends. Only what a tool is given as
        ``context.sandbox`` can.

        ``record`` is a folder that is made for it, to be read with ``contracts.sandbox.detached.Record``. It lives for
        ``limits.timeout`` seconds, until it is cancelled there, or until panic; what it prints goes into the record.
        One that lies in ``trunkline.contracts.sandbox.detached_program.programs_folder`` ends when its block is
        stopped, too.

        Raises:
            ToolError: as for ``start``; or there is such a record already, or it cannot be left.
        """
        raise ToolError("No program can be left running from here.", kind="unsupported")

    async def serve(self) -> None:
        """Work beside the programs for as long as the worker lives: what keeps places ready does it here. Cancelled at
        the end, and leaves nothing."""
        return

    async def end_all(self) -> int:
        """End every program of this home that this backend runs on this machine, whoever began it; how many there were.

        For ``trunkline panic``; also those of a worker that has died. Takes less than two seconds.
        """
        return 0


async def _to_its_end(
    process: SandboxProcess, stdin: bytes, timeout: float, out: BoundedOutput, err: BoundedOutput
) -> int | None:
    code: int | None = None
    trouble: ToolError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_fed, process.stdin, stdin)
        tasks.start_soon(read_into, process.stdout, out)
        tasks.start_soon(read_into, process.stderr, err)
        with anyio.move_on_after(timeout) as scope:
            try:
                code = await process.wait()
            except ToolError as error:
                trouble = error
        await process.kill("timeout" if scope.cancelled_caught else "killed")
    if trouble is not None:
        raise ToolError(
            f"{trouble} It said: {err.content().decode(errors='replace').strip()}", kind="failed"
        ) from trouble
    return None if process.killed else code


async def _emptied(stream: ByteReceiveStream) -> None:
    """Read what nobody has read of a program that has ended: asyncio closes a pipe at its end alone."""
    with anyio.move_on_after(LEFTOVER_SECONDS), suppress(*_OVER):
        while True:
            await stream.receive()


async def _fed(stream: ByteSendStream, content: bytes) -> None:
    """Write what the program reads; that it reads no more is no error."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        for piece in batched(content, READ_SIZE):
            await stream.send(piece)
    with suppress(anyio.BrokenResourceError, OSError):
        await stream.aclose()


class NoSandbox(Sandbox):
    """There is no sandbox here, as in tests that give none."""

    name = "none"

    async def unavailable(self) -> str | None:
        """It never can."""
        return "No program can be run from here."

    async def start(self, argv: Sequence[str], **given: object) -> SandboxProcess:
        """Refuse."""
        raise ToolError("No program can be run from here: there is no sandbox.", kind="unsupported")
