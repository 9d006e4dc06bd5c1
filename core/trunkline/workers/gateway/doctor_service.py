"""The doctor service: the checks of ``trunkline doctor``, by a process of their own. Callers check that the owner asks.

The checks belong to the command line, which no worker imports; and a process finds what a running worker cannot, such
as settings with which the next start would fail.
"""

import os
import subprocess
import sys
from typing import Literal

import anyio
import msgspec

from trunkline.config import HOME_VARIABLE, Config
from trunkline.errors import ErrorCode
from trunkline.home.listeners import Listener
from trunkline.workers.gateway.errors import refusal

LIMIT_SECONDS = 60.0


class DoctorFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check, as ``trunkline doctor --json`` has it."""

    id: str
    status: Literal["ok", "warning", "error", "skipped"]
    summary: str
    hint: str = ""
    owner: str = ""


class DoctorFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The output of ``trunkline doctor --json``."""

    ok: bool
    checks: tuple[DoctorFinding, ...]
    listeners: tuple[Listener, ...] = ()


class DoctorService:
    """Runs the checks, one run at a time. They change nothing and reach nothing but the bus."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._order = anyio.Lock()

    async def run(self) -> DoctorFindings:
        """Return the findings. Refused with ``engine_unavailable`` when the checks do not end in time."""
        argv = [sys.executable, "-m", "trunkline.cli.main", "doctor", "--json"]
        environ = {**os.environ, **self._config.environ, HOME_VARIABLE: str(self._config.home)}
        async with self._order:
            try:
                with anyio.fail_after(LIMIT_SECONDS):
                    done = await anyio.run_process(argv, env=environ, stderr=subprocess.DEVNULL, check=False)
                return msgspec.json.decode(done.stdout, type=DoctorFindings)
            except (TimeoutError, OSError, msgspec.DecodeError) as error:
                raise refusal(ErrorCode.ENGINE_UNAVAILABLE) from error
