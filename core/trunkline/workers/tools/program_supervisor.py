"""``python -m trunkline.workers.tools.program_supervisor RECORD LOCK``: runs one program in the sandbox and
outlives the worker that asked for it.

The sandbox ends a program with the process that began it. So that process is not the worker but this one: it has no
bus, no model and no memory, only the program, its output, its time and the latch. What it leaves is the record.
"""

import os
import signal
import sys
from contextlib import suppress
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
from trunkline.contracts.sandbox.sandbox import SandboxLimits, SandboxProcess
from trunkline.errors import ToolError
from trunkline.home.kill_switch import POLL_SECONDS, KillSwitch
from trunkline.plugins import Plugins

BEGAN = b"+"


def main() -> None:
    """Leave a child behind that keeps the program, and tell whether the program has begun: by the exit code, and by
    a sentence on standard error."""
    folder, lock = Path(sys.argv[1]), int(sys.argv[2])
    reads, writes = os.pipe()
    if os.fork():
        os.close(writes)
        os.close(lock)
        said = os.read(reads, 4096)
        if said != BEGAN:
            sys.exit(said.decode(errors="replace") or "The keeper ended before the program had begun.")
        return
    os.close(reads)
    os.setsid()
    os.set_inheritable(lock, False)
    with open(os.devnull, "r+b", buffering=0) as nothing:  # noqa: PTH123
        for handle in (0, 1, 2):
            os.dup2(nothing.fileno(), handle)
    _keep(folder, writes)


def _keep(folder: Path, told: int) -> None:
    record = DetachedProgram(folder)
    try:
        anyio.run(_kept, record, told)
    except BaseException as error:
        sentence = _sentence(error)
        with suppress(OSError):  # nobody waits for it any more, or the disk is full
            record.write_exit(ExitRecord(at=utc_now(), fault=sentence))
            os.write(told, sentence.encode()[:4000])
        raise SystemExit(1) from error


async def _kept(record: DetachedProgram, told: int) -> None:
    order = record.spec()
    if order is None:
        raise ToolError("The order cannot be read.", kind="internal")
    process = await _begun(order)
    os.write(told, BEGAN)
    try:
        record.write_exit(await _until_it_ends(process, record, order))
    except Exception as error:
        record.write_exit(ExitRecord(at=utc_now(), killed="broken", fault=_sentence(error)))


def _sentence(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or repr(error)


async def _until_it_ends(process: SandboxProcess, record: DetachedProgram, order: ProgramSpec) -> ExitRecord:
    """Wait for the end of the program, at the latest when its time is over. Raises what the sandbox does."""
    async with process:
        output = OutputFile(record.folder)
        async with anyio.create_task_group() as tasks:
            for stream in (process.stdout, process.stderr):
                tasks.start_soon(_read, stream, output)
            async with anyio.create_task_group() as watching:
                watching.start_soon(_watch, process, record, order)
                watching.start_soon(_heed_signals, process)
                code = await process.wait()
                watching.cancel_scope.cancel()
            await process.kill()
    killed = "panic" if process.killed and KillSwitch(Path(order.home)).is_engaged else process.killed
    return ExitRecord(at=utc_now(), exit_code=None if killed else code, killed=killed)


async def _begun(order: ProgramSpec) -> SandboxProcess:
    """Begin the program in the sandbox that was chosen for it. Raises ToolError."""
    config = load_config(Path(order.home))
    backends = {owned.item.name: owned.item for owned in Plugins.load(config).sandboxes()}
    if order.backend not in backends:
        raise ToolError(f"The sandbox {order.backend} is not to be found.", kind="unsupported")
    limits = SandboxLimits(
        memory=order.memory,
        cpus=order.cpus,
        processes=order.processes,
        network=order.network,
        writable=order.writable,
    )
    process = await backends[order.backend].start(
        order.argv,
        workspace=Path(order.workspace),
        env=order.env,
        folder=order.folder,
        limits=limits,
        label=order.label,
    )
    await process.stdin.aclose()
    return process


async def _watch(process: SandboxProcess, record: DetachedProgram, order: ProgramSpec) -> None:
    """End it when its time is over, when somebody wants it to end, and at panic."""
    latch = KillSwitch(Path(order.home))
    with anyio.move_on_after(order.seconds):
        while not (why := record.cancel_reason()) and not latch.is_engaged:  # noqa: ASYNC110  others write these files
            await anyio.sleep(POLL_SECONDS)
        await process.kill(why or "panic")
        return
    await process.kill("timeout")


async def _heed_signals(process: SandboxProcess) -> None:
    """Whoever stops this process, such as a machine that shuts down, has the program end in good order."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            await process.kill("stopped")


async def _read(stream: ByteReceiveStream, output: OutputFile) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for piece in stream:
            output.add(piece)


if __name__ == "__main__":
    main()
