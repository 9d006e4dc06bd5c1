"""The sandbox of a tool that runs apart: the tools worker runs the program, as if the tool ran there."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from trunkline.contracts.plugins.messages import SandboxHostCall
from trunkline.contracts.sandbox.sandbox import (
    DEFAULT_LIMITS,
    Sandbox,
    SandboxLimits,
    SandboxProcess,
    SandboxResult,
)
from trunkline.errors import ToolError, error_kind_named
from trunkline.workers.plugin_process.host_calls import HostCallClient

MOST_IN = 60_000
"""Bytes of standard input that travel with the wish."""

NO_START = (
    "A plugin in a process of its own runs programs to their end (context.sandbox.run) and holds none that lives on. "
    "Nothing was run."
)


class ProxySandbox(Sandbox):
    """``Sandbox`` by ``wishes``: ``run`` alone, in the workspace of the call or in none."""

    name = "apart"

    def __init__(self, wishes: HostCallClient, workspace: Path) -> None:
        self._wishes = wishes
        self._workspace = workspace

    async def unavailable(self) -> str | None:
        """Why programs cannot be run, as the tools worker finds."""
        answer = await self._wishes.call(lambda number: SandboxHostCall(number=number))
        return answer.error

    async def start(self, argv: Sequence[str], **given: object) -> SandboxProcess:
        """Refuse."""
        raise ToolError(NO_START, kind="unsupported")

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
        """Have it run."""
        if workspace not in (None, self._workspace):
            raise ToolError(
                f"A plugin in a process of its own can run programs in {self._workspace} or in none.",
                kind="unsupported",
            )
        if read_only:
            raise ToolError(
                "A plugin in a process of its own can give a program nothing to read but the workspace.",
                kind="unsupported",
            )
        if len(stdin) > MOST_IN:
            raise ToolError(
                f"That is too much for standard input from here: at most {MOST_IN} bytes.", kind="too_large"
            )
        answer = await self._wishes.call(
            lambda number: SandboxHostCall(
                number=number,
                argv=tuple(argv),
                placed=workspace is not None,
                env=dict(env),
                folder=folder,
                stdin=stdin,
                limits=asdict(limits),
            )
        )
        if answer.error is not None:
            raise ToolError(answer.error, kind=error_kind_named(answer.code))
        return msgspec.json.decode(answer.result, type=SandboxResult)
