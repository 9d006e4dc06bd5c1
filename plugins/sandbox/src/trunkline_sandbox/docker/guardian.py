"""Has a process that outlives this one remove the containers that this one leaves."""

import os
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from trunkline import ToolError
from trunkline_sandbox.docker import guardian_program
from trunkline_sandbox.labels import GUARDIAN_LABEL


class Guardian:
    """A guardian for the containers of whoever holds this, begun with the first of them; they carry its ``name``."""

    def __init__(self, host: str) -> None:
        self.name = token_hex(8)
        self._socket = host.removeprefix("unix://")
        self._lock = anyio.Lock()
        self._begun = False

    async def ensure_started(self) -> None:
        """From now on nothing is left when this process ends, in good order or not. Raises ToolError."""
        async with self._lock:
            if self._begun:
                return
            try:
                await anyio.to_thread.run_sync(self._begin)
            except (OSError, subprocess.SubprocessError) as error:
                raise ToolError(
                    f"No container was created, because its guardian could not be started ({error}).",
                    kind="unavailable",
                ) from error
            self._begun = True

    def _begin(self) -> None:
        """It holds one end of a pipe, and this process the other: no child inherits that one, so it is closed when, and
        only when, this process lets go of it."""
        reads, writes = os.pipe()
        let_go = weakref.finalize(self, _close, writes)
        command = (sys.executable, "-I", "-S", str(Path(guardian_program.__file__)), self._socket)
        try:
            subprocess.run(
                [*command, f"{GUARDIAN_LABEL}={self.name}"],
                stdin=reads, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={}, check=True,
            )  # fmt: skip
        except BaseException:
            let_go()  # it is tried again for the next container, with another pipe
            raise
        finally:
            os.close(reads)


def _close(handle: int) -> None:
    with suppress(OSError):
        os.close(handle)
