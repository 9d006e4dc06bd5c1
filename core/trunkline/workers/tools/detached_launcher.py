"""Starts the supervisor (``program_supervisor.py``) of a program that is to outlive this worker."""

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
"""What of this worker's environment a keeper is given: what finding the sandbox takes, and no secret of the others."""


async def launch_detached(record: DetachedProgram, order: ProgramSpec) -> None:
    """Record the order and begin it. Done when the program runs.

    Raises:
        ToolError: it does not; nothing is left of it then.
    """
    lock = await anyio.to_thread.run_sync(record.create, order)
    try:
        with anyio.CancelScope(shield=True):  # else nobody would know whether it was begun
            said = await _launch_supervisor(record, order.home, lock)
    finally:
        os.close(lock)
    if said is not None:
        await anyio.to_thread.run_sync(record.remove)
        raise ToolError(f"The program was not begun: {said}", kind="unavailable")


async def _launch_supervisor(record: DetachedProgram, home: str, lock: int) -> str | None:
    """None once the program runs, else why it does not.

    What is said goes into a file: a pipe would be waited for as long as anybody has its other end.
    """
    command = (
        sys.executable,
        "-m",
        "trunkline.workers.tools.program_supervisor",
        str(record.folder),
        str(lock),
    )
    with tempfile.TemporaryFile() as said:
        done = await anyio.run_process(
            command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            env=_env(home), cwd="/", pass_fds=(lock,),
        )  # fmt: skip
        if done.returncode == 0:
            return None
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "its keeper ended."


def _env(home: str) -> dict[str, str]:
    given = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_VARIABLE_PREFIXES)
    }
    return {**given, "TRUNKLINE_HOME": home}
