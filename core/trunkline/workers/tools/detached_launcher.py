"""Starts the supervisor (``program_supervisor.py``) of a program that outlives this worker."""

import os
import subprocess
import sys
import tempfile

import anyio
import anyio.to_thread

from trunkline.contracts.sandbox.detached_program import DetachedProgram, ProgramSpec
from trunkline.errors import ToolError

KEPT_VARIABLES = ("DOCKER_HOST", "HOME", "LANG", "PATH", "XDG_RUNTIME_DIR")
KEPT_VARIABLE_PREFIXES = ("TRUNKLINE_PLUGINS__",)
"""The environment variables that the supervisor gets: those needed to find the sandbox, and no other plugin's
secrets."""


async def launch_detached(record: DetachedProgram, order: ProgramSpec) -> None:
    """Write the record and start the program. Returns when the program runs.

    Raises:
      ToolError: the program could not be started; its record is removed.
    """
    lock = await anyio.to_thread.run_sync(record.create, order)
    try:
        with anyio.CancelScope(
            shield=True
        ):  # a cancellation here would leave unknown whether the program runs
            problem = await _launch_supervisor(record, order.home, lock)
    finally:
        os.close(lock)
    if problem is not None:
        await anyio.to_thread.run_sync(record.remove)
        raise ToolError(f"The program was not started: {problem}", kind="unavailable")


async def _launch_supervisor(record: DetachedProgram, home: str, lock: int) -> str | None:
    """Start the supervisor. Return None when the program runs, otherwise the reason why not.

    The supervisor reports through a file: a pipe would stay open as long as any process holds its other end.
    """
    command = (
        sys.executable,
        "-m",
        "trunkline.workers.tools.program_supervisor",
        str(record.folder),
        str(lock),
    )
    with tempfile.TemporaryFile() as messages:
        done = await anyio.run_process(
            command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages,
            env=_env(home), cwd="/", pass_fds=(lock,),
        )  # fmt: skip
        if done.returncode == 0:
            return None
        messages.seek(0)
        lines = messages.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "its supervisor ended."


def _env(home: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_VARIABLE_PREFIXES)
    }
    return {**kept, "TRUNKLINE_HOME": home}
