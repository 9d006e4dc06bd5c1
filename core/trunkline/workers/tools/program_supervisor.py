"""``python -m trunkline.workers.tools.program_supervisor RECORD LOCK``: runs one program in the sandbox and outlives
the worker that started it.

The sandbox ends a program together with its parent process. So the parent is this process and not the worker. It has
no bus, model or memory. It watches the program, its output, its time limit and the kill switch, and writes the
record.
"""

import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream

from trunkline.config import load_config
from trunkline.contracts.sandbox.detached_program import (
    DetachedProgram,
    ExitRecord,
    OutputFile,
    ProgramSpec,
    utc_now,
)
from trunkline.contracts.sandbox.program_request import SandboxLimits, check_program
from trunkline.contracts.sandbox.sandbox import SandboxProcess
from trunkline.errors import ToolError
from trunkline.home.kill_switch import POLL_SECONDS, KillSwitch
from trunkline.plugins import Plugins

STARTED = b"+"


def main() -> None:
    """Fork the supervisor. Report by the exit code, and by a sentence on standard error, whether the program has
    started.
    """
    folder, lock = Path(sys.argv[1]), int(sys.argv[2])
    reads, writes = os.pipe()
    if os.fork():
        os.close(writes)
        os.close(lock)
        status = os.read(reads, 4096)
        if status != STARTED:
            sys.exit(
                status.decode(errors="replace") or "The supervisor ended before the program had started."
            )
        return
    os.close(reads)
    os.setsid()
    os.set_inheritable(lock, False)
    with open(os.devnull, "r+b", buffering=0) as nothing:  # noqa: PTH123
        for handle in (0, 1, 2):
            os.dup2(nothing.fileno(), handle)
    _supervise(folder, writes)


def _supervise(folder: Path, status_pipe: int) -> None:
    record = DetachedProgram(folder)
    try:
        anyio.run(_supervise_program, record, status_pipe)
    except BaseException as error:
        sentence = _sentence(error)
        with suppress(OSError):  # the launcher has ended, or the disk is full
            record.write_exit(ExitRecord(at=utc_now(), fault=sentence))
            os.write(status_pipe, sentence.encode()[:4000])
        raise SystemExit(1) from error


async def _supervise_program(record: DetachedProgram, status_pipe: int) -> None:
    spec = record.spec()
    if spec is None:
        raise ToolError("The order cannot be read.", kind="internal")
    process = await _start(spec)
    os.write(status_pipe, STARTED)
    try:
        record.write_exit(await _wait_for_end(process, record, spec))
    except Exception as error:
        record.write_exit(ExitRecord(at=utc_now(), killed="broken", fault=_sentence(error)))


def _sentence(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or repr(error)


async def _wait_for_end(process: SandboxProcess, record: DetachedProgram, spec: ProgramSpec) -> ExitRecord:
    """Wait until the program ends or reaches its time limit. Raises the errors of the sandbox."""
    async with process:
        output = OutputFile(record.folder)
        async with anyio.create_task_group() as tasks:
            for stream in (process.stdout, process.stderr):
                tasks.start_soon(_read, stream, output)
            async with anyio.create_task_group() as watching:
                watching.start_soon(_watch, process, record, spec)
                watching.start_soon(_heed_signals, process)
                code = await process.wait()
                watching.cancel_scope.cancel()
            await process.kill()
    killed = "panic" if process.killed and KillSwitch(Path(spec.home)).is_engaged else process.killed
    return ExitRecord(at=utc_now(), exit_code=None if killed else code, killed=killed)


async def _start(spec: ProgramSpec) -> SandboxProcess:
    """Start the program in the chosen sandbox. Raises ToolError."""
    config = load_config(Path(spec.home))
    backends = {owned.item.name: owned.item for owned in Plugins.load(config).sandboxes()}
    if spec.backend not in backends:
        raise ToolError(f"The sandbox {spec.backend} is not installed.", kind="unsupported")
    limits = SandboxLimits(
        memory=spec.memory,
        cpus=spec.cpus,
        processes=spec.processes,
        network=spec.network,
        writable=spec.writable,
    )
    request = check_program(
        spec.argv,
        workspace=Path(spec.workspace),
        env=spec.env,
        folder=spec.folder,
        limits=limits,
        label=spec.label,
    )
    process = await backends[spec.backend].start_program(replace(request, tool=spec.tool))
    await process.stdin.aclose()
    return process


async def _watch(process: SandboxProcess, record: DetachedProgram, spec: ProgramSpec) -> None:
    """End the program at its time limit, at a request to cancel, and when the kill switch is engaged."""
    kill_switch = KillSwitch(Path(spec.home))
    with anyio.move_on_after(spec.seconds):
        while not (why := record.cancel_reason()) and not kill_switch.is_engaged:  # noqa: ASYNC110  others write these files
            await anyio.sleep(POLL_SECONDS)
        await process.kill(why or "panic")
        return
    await process.kill("timeout")


async def _heed_signals(process: SandboxProcess) -> None:
    """End the program in an orderly way when this process receives a signal to end, for example at a shutdown."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            await process.kill("stopped")


async def _read(stream: ByteReceiveStream, output: OutputFile) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for piece in stream:
            output.add(piece)


if __name__ == "__main__":
    main()
