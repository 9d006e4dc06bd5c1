"""The backend bubblewrap: begins programs in namespaces of their own. Linux; needs no root and no service."""

import os
import platform
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import Process

import trunkline
from trunkline import Sandbox, SandboxLimits, ToolError
from trunkline.api.sandbox import KillSwitch, ProgramRequest, SandboxProcess
from trunkline.api.seccomp import ARCHITECTURES, encode_filter
from trunkline_sandbox import seccomp_filter
from trunkline_sandbox.bubblewrap import cgroups, filesystem_view, probe, process_cleanup
from trunkline_sandbox.bubblewrap.arguments import SHELL, bubblewrap_options
from trunkline_sandbox.bubblewrap.limits import apply_limits
from trunkline_sandbox.bubblewrap.process import BubblewrapProcess
from trunkline_sandbox.bubblewrap.status import StatusPipe, wait_until_made
from trunkline_sandbox.bubblewrap.uplink import start_uplink
from trunkline_sandbox.labels import bubblewrap_labels
from trunkline_sandbox.limit_watcher import WatchedLimits
from trunkline_sandbox.masks import Masks, masked_files
from trunkline_sandbox.settings import SandboxSettings
from trunkline_sandbox.usage import MIB

MASKER_PROGRAM = Path(__file__).with_name("file_masker.py")
CORE_FOLDER = Path(trunkline.__file__).parents[1]

START_SECONDS = 20.0
"""Seconds that bubblewrap may take to set up namespaces and mounts. On an idle machine it takes milliseconds."""


class Bubblewrap(Sandbox):
    """See ``trunkline.Sandbox``."""

    name = "bubblewrap"

    def __init__(self, settings: SandboxSettings, home: Path) -> None:
        self._settings = settings
        self._home = home
        self._kill_switch = KillSwitch(home)
        self._place: cgroups.CgroupRoot | None = None
        self._looked = False

    async def unavailable(self) -> str | None:
        """See ``Sandbox``. Tries it with all that every program gets."""
        return await probe.unavailable_reason(self)

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        """See ``Sandbox``."""
        self._kill_switch.raise_if_engaged()
        if (image := self._settings.images.get(request.tool)) is not None:
            raise ToolError(
                f"The tool {request.tool} has the image {image} in [plugins.sandbox.images], and bubblewrap runs no "
                'images. Set backend = "docker" in [plugins.sandbox], or remove the image. Nothing was run.',
                kind="unsupported",
            )
        executable = shutil.which("bwrap")
        if executable is None or platform.machine() not in ARCHITECTURES:
            raise ToolError(
                probe.MISSING if executable is None else probe.UNKNOWN_MACHINE, kind="unsupported"
            )
        if not self._looked:
            self._place = await anyio.to_thread.run_sync(cgroups.find_root)
            self._looked = True
        masks = await anyio.to_thread.run_sync(masked_files, request.workspace)
        try:
            return await self._spawn(executable, request, masks)
        except OSError as error:
            raise ToolError(
                f"The sandbox could not be created for this program: {error}.", kind="unavailable"
            ) from error

    async def serve(self) -> None:
        """See ``Sandbox``: clears up once."""
        await anyio.to_thread.run_sync(process_cleanup.end_orphans, self._home)

    async def end_all(self) -> int:
        """See ``Sandbox``."""
        return await anyio.to_thread.run_sync(process_cleanup.end_all, self._home)

    async def _spawn(self, executable: str, program: ProgramRequest, masks: Masks) -> BubblewrapProcess:
        with ExitStack() as ours, ExitStack() as theirs:
            status_read, status_write = _pipe(ours, theirs)
            waits, go = _pipe(theirs, ours)
            made = {
                place: _text_handle(theirs, text.encode())
                for place, text in filesystem_view.generated_files(program.limits).items()
            }
            words = bubblewrap_options(program, made, self._settings.readable_paths)
            filtered = _text_handle(
                theirs,
                encode_filter(
                    seccomp_filter.filter_program(platform.machine(), grouped=self._place is not None)
                ),
            )
            handles = ("--seccomp", filtered, "--json-status-fd", status_write, "--block-fd", waits)
            given = _text_handle(theirs, "\0".join((*map(str, handles), *words)).encode())
            with anyio.CancelScope(shield=True):  # else only the outer one of two processes would be ended
                raw = await anyio.open_process(
                    [
                        executable,
                        *bubblewrap_labels(self._home, program.label),
                        "--args",
                        str(given),
                        "--",
                        *SHELL,
                        *program.argv,
                    ],
                    pass_fds=(status_write, waits, filtered, given, *made.values()),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd="/",
                    env={},
                    start_new_session=True,
                )
            theirs.close()
            process: BubblewrapProcess | None = None
            try:
                process = await self._with_limits(raw, StatusPipe(status_read), program.limits)
                masked = masks.hidden or masks.locked
                connected = program.limits.network and not program.limits.host_network
                if masked or connected:
                    await _wait_until_made(raw, process.first)
                if masked:
                    await _mask_files(process.first, program.limits.repository)
                if connected:
                    process.uplink = await start_uplink(process.first)
                process.watch(self._watched_limits(program, process.first))
                self._kill_switch.raise_if_engaged()  # panic may have looked for programs while this one was being made
                os.write(go, b"1")
            except BaseException:
                await _kill_bubblewrap(raw)
                if process is not None:
                    await process.discard()
                raise
            os.close(go)
            ours.pop_all()
            return process

    def _watched_limits(self, program: ProgramRequest, first: int) -> WatchedLimits:
        """Return the limits that the kernel does not enforce here, so that a watcher must."""
        limits = program.limits
        writes = program.workspace is not None and limits.writable
        return WatchedLimits(
            memory=None if self._place is not None else limits.memory * MIB,
            disk=self._settings.workspace_mb * MIB if writes else None,
            workspace=program.workspace,
            first=first,
        )

    async def _with_limits(
        self, raw: Process, status: StatusPipe, limits: SandboxLimits
    ) -> BubblewrapProcess:
        """The program, not begun yet, once its limits are on it."""
        with anyio.move_on_after(START_SECONDS):
            child = await status.child()
            if child is not None:
                return BubblewrapProcess(raw, child, status, apply_limits(child, limits, self._place))
        raise ToolError(f"The sandbox could not be created: {await _read_stderr(raw)}", kind="unavailable")


async def _wait_until_made(raw: Process, first: int) -> None:
    """Wait until others may enter the sandbox. Raises ToolError."""
    with anyio.move_on_after(START_SECONDS):
        if await wait_until_made(first):
            return
    raise ToolError(f"The sandbox could not be created: {await _read_stderr(raw)}", kind="unavailable")


async def _mask_files(process: int, repository: str) -> None:
    """Have every protected file of the workspace hidden from a program that has not begun, and every bare repository
    but one made read-only. Raises ToolError."""
    command = (
        sys.executable,
        "-I",
        "-S",
        "-B",
        str(MASKER_PROGRAM),
        str(process),
        str(CORE_FOLDER),
        repository,
    )
    done = await anyio.run_process(command, check=False, env={}, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ToolError(
            f"The protected files cannot be hidden, so nothing was run: {' '.join(said)}", kind="unavailable"
        )


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    reads, writes = os.pipe()
    reader.callback(_closed, reads)
    writer.callback(_closed, writes)
    return reads, writes


def _text_handle(stack: ExitStack, text: bytes) -> int:
    """A handle that the text is read from."""
    handle = os.memfd_create("trunkline")
    stack.callback(_closed, handle)
    with open(handle, "wb", closefd=False) as file:
        file.write(text)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _closed(handle: int) -> None:
    with suppress(OSError):
        os.close(handle)


async def _read_stderr(raw: Process) -> str:
    """Return bubblewrap's own error message."""
    _end_group(raw)
    assert raw.stderr is not None
    pieces = [piece async for piece in raw.stderr]
    return b"".join(pieces).decode(errors="replace").strip()[-500:] or "bubblewrap did not start in time."


def _end_group(raw: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(raw.pid, signal.SIGKILL)


async def _kill_bubblewrap(raw: Process) -> None:
    """End bubblewrap during its setup, together with its child. Until the program starts, the child is in bubblewrap's
    process group and would otherwise wait for ever on its pipe."""
    with anyio.CancelScope(shield=True):
        _end_group(raw)
        await raw.aclose()
