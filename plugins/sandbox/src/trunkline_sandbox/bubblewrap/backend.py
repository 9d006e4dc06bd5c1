"""The backend bubblewrap: begins programs in namespaces of their own. Linux; needs no root and no service."""

import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import Process

import trunkline
from trunkline._util.seccomp import ARCHITECTURES, encoded
from trunkline.contracts.sandbox.program_request import Program, asked
from trunkline.contracts.sandbox.sandbox import USUAL, Sandbox, SandboxLimits, SandboxProcess
from trunkline.errors import ToolError
from trunkline.home.kill_switch import Latch
from trunkline_sandbox import seccomp_filter
from trunkline_sandbox.bubblewrap import cgroups, filesystem_view, probe, process_cleanup
from trunkline_sandbox.bubblewrap.arguments import SHELL, options
from trunkline_sandbox.bubblewrap.limits import hold
from trunkline_sandbox.bubblewrap.process import Wrapped
from trunkline_sandbox.bubblewrap.status import Status
from trunkline_sandbox.bubblewrap.uplink import lead_out
from trunkline_sandbox.labels import mark
from trunkline_sandbox.limit_watcher import Bounds
from trunkline_sandbox.masks import Masks, masked
from trunkline_sandbox.settings import SandboxSettings
from trunkline_sandbox.usage import MIB

HIDE = Path(__file__).with_name("file_masker.py")
CORE = Path(trunkline.__file__).parents[1]

BEGIN_SECONDS = 20.0
"""How long bubblewrap may take to set up namespaces and mounts; on an idle machine it takes milliseconds."""


class Bubblewrap(Sandbox):
    """See ``trunkline.Sandbox``."""

    name = "bubblewrap"

    def __init__(self, settings: SandboxSettings, home: Path) -> None:
        self._settings = settings
        self._home = home
        self._latch = Latch(home)
        self._place: cgroups.Place | None = None
        self._looked = False

    async def unavailable(self) -> str | None:
        """See ``Sandbox``. Tries it with all that every program gets."""
        return await probe.unavailable(self)

    async def start(
        self,
        argv: Sequence[str],
        *,
        workspace: Path | None,
        env: Mapping[str, str],
        folder: str = "",
        read_only: Mapping[str, Path] | None = None,
        limits: SandboxLimits = USUAL,
        label: str = "",
    ) -> SandboxProcess:
        """See ``Sandbox``."""
        program = asked(
            argv, workspace=workspace, env=env, folder=folder, read_only=read_only, limits=limits, label=label
        )
        self._latch.refuse()
        executable = shutil.which("bwrap")
        if executable is None or platform.machine() not in ARCHITECTURES:
            raise ToolError(
                probe.MISSING if executable is None else probe.UNKNOWN_MACHINE, kind="unsupported"
            )
        if not self._looked:
            self._place = await anyio.to_thread.run_sync(cgroups.find)
            self._looked = True
        masks = await anyio.to_thread.run_sync(masked, program.workspace)
        try:
            return await self._begun(executable, program, masks)
        except OSError as error:
            raise ToolError(
                f"The sandbox could not be made for this program: {error}.", kind="unavailable"
            ) from error

    async def serve(self) -> None:
        """See ``Sandbox``: clears up once."""
        await anyio.to_thread.run_sync(process_cleanup.end_orphans, self._home)

    async def end_all(self) -> int:
        """See ``Sandbox``."""
        return await anyio.to_thread.run_sync(process_cleanup.end_all, self._home)

    async def _begun(self, executable: str, program: Program, masks: Masks) -> Wrapped:
        with ExitStack() as ours, ExitStack() as theirs:
            told, tells = _pipe(ours, theirs)
            waits, go = _pipe(theirs, ours)
            made = {
                place: _text(theirs, text.encode())
                for place, text in filesystem_view.made(program.limits).items()
            }
            words = options(program, made, self._settings.system)
            filtered = _text(
                theirs, encoded(seccomp_filter.program(platform.machine(), grouped=self._place is not None))
            )
            handles = ("--seccomp", filtered, "--json-status-fd", tells, "--block-fd", waits)
            given = _text(theirs, "\0".join((*map(str, handles), *words)).encode())
            with anyio.CancelScope(shield=True):  # else only the outer one of two processes would be ended
                raw = await anyio.open_process(
                    [
                        executable,
                        *mark(self._home, program.label),
                        "--args",
                        str(given),
                        "--",
                        *SHELL,
                        *program.argv,
                    ],
                    pass_fds=(tells, waits, filtered, given, *made.values()),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd="/",
                    env={},
                    start_new_session=True,
                )
            theirs.close()
            process: Wrapped | None = None
            try:
                process = await self._held(raw, Status(told), program.limits)
                if masks.hidden or masks.locked:
                    await _hidden(process.first, program.limits.repository)
                if program.limits.network and not program.limits.host_network:
                    process.uplink = await lead_out(process.first)
                process.watch(self._bounds(program, process.first))
                self._latch.refuse()  # panic may have looked for programs while this one was being made
                os.write(go, b"1")
            except BaseException:
                await _away(raw)
                if process is not None:
                    await process.let_go()
                raise
            os.close(go)
            ours.pop_all()
            return process

    def _bounds(self, program: Program, first: int) -> Bounds:
        """What of the program the kernel does not bound here."""
        limits = program.limits
        writes = program.workspace is not None and limits.writable
        return Bounds(
            memory=None if self._place is not None else limits.memory * MIB,
            disk=self._settings.workspace * MIB if writes else None,
            workspace=program.workspace,
            first=first,
        )

    async def _held(self, raw: Process, status: Status, limits: SandboxLimits) -> Wrapped:
        """The program, not begun yet, once its limits are on it."""
        with anyio.move_on_after(BEGIN_SECONDS):
            child = await status.child()
            if child is not None:
                return Wrapped(raw, child, status, hold(child, limits, self._place))
        raise ToolError(f"The sandbox could not be made: {await _said(raw)}", kind="unavailable")


async def _hidden(process: int, repository: str) -> None:
    """Have every protected file of the workspace hidden from a program that has not begun, and every bare repository
    but one made read-only. Raises ToolError."""
    command = (sys.executable, "-I", "-S", "-B", str(HIDE), str(process), str(CORE), repository)
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


def _text(stack: ExitStack, text: bytes) -> int:
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


async def _said(raw: Process) -> str:
    """Why bubblewrap gave up, in its own words."""
    _end_group(raw)
    assert raw.stderr is not None
    pieces = [piece async for piece in raw.stderr]
    return b"".join(pieces).decode(errors="replace").strip()[-500:] or "bubblewrap did not begin in time."


def _end_group(raw: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(raw.pid, signal.SIGKILL)


async def _away(raw: Process) -> None:
    """End bubblewrap in the middle of its work: with its child, which until the program begins is in its group, and
    would wait for ever for what it is to be told."""
    with anyio.CancelScope(shield=True):
        _end_group(raw)
        await raw.aclose()
