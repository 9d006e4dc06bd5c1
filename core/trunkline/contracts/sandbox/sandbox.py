"""The sandbox in which programs run. Without a sandbox, tools with the effect ``exec`` are refused; programs never
run unprotected instead.

A backend implements ``start_program``. ``start`` and ``run`` check their arguments and are built on it.
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
from trunkline.contracts.sandbox.program_request import (
    DEFAULT_LIMITS,
    ProgramRequest,
    SandboxLimits,
    check_program,
)
from trunkline.errors import ToolError

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
class SandboxResult:
    """The result of a program. ``exit_code`` is None if the program was killed; ``killed`` then names the limit or
    request: ``timeout``, ``memory``, ``disk``, ``unmeasured`` (its resource use could not be measured), or ``panic``.
    Output beyond its limit is reduced to its beginning and end, with a line between them; ``dropped`` is the number
    of missing bytes.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    seconds: float
    killed: str = ""
    dropped: int = 0


class SandboxProcess(ABC):
    """A running program. Use it as a context manager: leaving the block ends the program and every process that it
    started.

    ``killed`` names, once the program has ended, the limit or request that ended it; "" if it ended by itself. Close
    ``stdin`` to signal the end of the input.

    Guarantees: when ``wait`` or ``kill`` returns, or the block is left, the program and every process that it started
    have ended. The methods may be called concurrently, and again after the end.

    Not guaranteed: the end of a program whose container engine does not answer. Such a program is ended later. Output
    that is not read before the block is left is lost.
    """

    stdin: ByteSendStream
    stdout: ByteReceiveStream
    stderr: ByteReceiveStream
    killed: str = ""

    @abstractmethod
    async def wait(self) -> int | None:
        """Wait until the program and every process that it started have ended. Return the exit code, or 128 plus the
        number of the signal that ended the program; None if it was killed. Cancelling this method does not end the
        program.

        Raises:
            ToolError: the program never started because the sandbox could not be created, or the backend failed.
        """

    @abstractmethod
    async def kill(self, why: str = "killed") -> None:
        """End the program and every process that it started, and wait until they have ended. Does nothing if the
        program has ended. ``why`` becomes ``killed``, unless a limit has ended the program before. Raises nothing.
        """

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
    """A backend that isolates a program by means of the operating system. The tools worker uses the first installed
    backend that is available.

    Guarantees: a program reads only what ``start`` names, the system's programs and libraries, and the paths that the
    owner permits. It changes only ``/tmp`` and what ``start`` lets it write, inherits no environment variable, and
    reaches no network that ``limits`` does not permit. Programs may run concurrently. If ``start`` or ``run`` raises or
    is cancelled, its program does not continue to run.

    Not guaranteed: protection against faults of the kernel or of the container engine. A program of a worker that was
    killed may continue to run for a while: ``serve`` of the next worker, or ``end_all``, ends it.
    """

    name: str

    @abstractmethod
    async def unavailable(self) -> str | None:
        """Return None if the backend can be used on this machine, else a sentence that says what to install or permit.
        The tools worker uses the answer for 10 seconds.

        Raises nothing. If it does, the tools worker logs the exception and treats the backend as unavailable.
        """

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
        show_output: bool = False,
    ) -> SandboxProcess:
        """Start a program. Use the result with ``async with``.

        Args:
            argv: The program and its arguments; no shell reads them. A program that is not found exits with 127.
            workspace: The one folder that the program may write, unless ``limits`` forbids it; inside the sandbox its
                path is ``/workspace``. Files with protected names in it appear empty to the program, and so do git
                settings that hold a password; bare repositories in it are read-only. None: ``/workspace`` is empty and
                cannot be written.
            env: The environment; nothing is inherited. ``PATH``, ``HOME`` and ``LANG`` are added if missing.
            folder: The working directory, relative to the workspace.
            read_only: Further files and folders: the path of each inside the sandbox, and its path on this machine.
            limits: The limits of the program.
            label: The purpose of the program, shown to people in process lists.
            show_output: Whether people who watch the tool call see the output as it is read. Only the sandbox of
                ``context.sandbox`` shows it.

        Raises:
            ToolError: the sandbox cannot be used or created, an argument is invalid, a limit is not permitted, or
                ``trunkline panic`` has stopped everything.
        """
        return await self.start_program(
            check_program(
                argv,
                workspace=workspace,
                env=env,
                folder=folder,
                read_only=read_only,
                limits=limits,
                label=label,
                show_output=show_output,
            )
        )

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
        show_output: bool = False,
    ) -> SandboxResult:
        """Run a program until it ends or its time limit is reached, with ``stdin`` as its whole input. The result has
        its output in either case.

        Raises:
            ToolError: as for ``start``; or the program never started, or the backend failed while it ran.
        """
        request = check_program(
            argv,
            workspace=workspace,
            env=env,
            folder=folder,
            read_only=read_only,
            limits=limits,
            label=label,
            show_output=show_output,
        )
        return await self.run_program(request, stdin)

    @abstractmethod
    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        """Start the program of a checked request; see ``start``. A backend implements this method.

        Raises:
            ToolError: as for ``start``.
        """

    async def run_program(self, request: ProgramRequest, stdin: bytes) -> SandboxResult:
        """Run the program of a checked request to its end; see ``run``.

        Raises:
            ToolError: as for ``run``.
        """
        limits = request.limits
        began = anyio.current_time()
        async with await self.start_program(request) as process:
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
        """Start a program that continues when the worker ends or dies. Only the sandbox of ``context.sandbox`` can do
        this.

        ``record`` is a folder that is created for the program's record; read it with
        ``trunkline.api.sandbox.DetachedProgram``. The program runs until it ends, for ``limits.timeout`` seconds at
        most, until it is cancelled through its record, or until panic. Its output is written to the record. If the
        record is in ``trunkline.api.sandbox.programs_folder``, the program also ends when its block is stopped.

        Guarantees: when this method returns, the program has started and its record exists.

        Not guaranteed: that the program survives a restart of the machine. Its record then has the status ``lost``.

        Raises:
            ToolError: as for ``start``; or the record exists already, or this sandbox cannot leave programs running.
                The program does not run.
        """
        raise ToolError("This sandbox cannot leave programs running.", kind="unsupported")

    async def serve(self) -> None:
        """Run background work while the worker lives, such as keeping sandboxes ready. The method may return early. It
        is cancelled at the end and must leave nothing behind.

        Raises nothing. If it does, the tools worker logs the exception and does not call this method again. Programs
        can still be started.
        """
        return

    async def end_all(self) -> int:
        """End every program of this home that this backend runs on this machine, whichever process started it. Return
        their number.

        ``trunkline panic`` uses this, also for programs of a worker that has died. It takes less than two seconds.

        Raises nothing. If it does, the tools worker logs the exception and ends the programs of the other backends.
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
            f"{trouble} Its error output: {err.content().decode(errors='replace').strip()}", kind="failed"
        ) from trouble
    return None if process.killed else code


async def _emptied(stream: ByteReceiveStream) -> None:
    """Read the remaining output of a program that has ended: asyncio closes a pipe only at its end."""
    with anyio.move_on_after(LEFTOVER_SECONDS), suppress(*_OVER):
        while True:
            await stream.receive()


async def _fed(stream: ByteSendStream, content: bytes) -> None:
    """Write the program's input. It is no error if the program stops reading."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        for piece in batched(content, READ_SIZE):
            await stream.send(piece)
    with suppress(anyio.BrokenResourceError, OSError):
        await stream.aclose()


class NoSandbox(Sandbox):
    """The sandbox of a context without a backend, as in tests. It runs no program."""

    name = "none"

    async def unavailable(self) -> str | None:
        """Return the sentence that no program can be run. Raises nothing."""
        return "No program can be run from here."

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        """Refuse to start a program. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("No program can be run here: there is no sandbox.", kind="unsupported")
