"""The sandbox of an isolated plugin's tool. The tools worker runs the program as if the tool ran there."""

from dataclasses import asdict
from pathlib import Path

import msgspec

from trunkline.contracts.plugins.messages import SandboxHostCall
from trunkline.contracts.sandbox.program_request import ProgramRequest
from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxProcess, SandboxResult
from trunkline.errors import ToolError, error_kind_named
from trunkline.workers.plugin_process.host_calls import HostCallClient

MAX_STDIN = 60_000
"""Largest number of bytes of standard input in a host call."""

NO_START = (
    "A plugin in a process of its own can only run programs to their end (context.sandbox.run). "
    "Nothing was run."
)


class ProxySandbox(Sandbox):
    """A ``Sandbox`` that sends host calls. It supports only ``run``, in the workspace of the call or without one."""

    name = "apart"

    def __init__(self, calls: HostCallClient, workspace: Path) -> None:
        self._calls = calls
        self._workspace = workspace

    async def unavailable(self) -> str | None:
        """Return why programs cannot run, as the tools worker reports it."""
        answer = await self._calls.call(lambda number: SandboxHostCall(number=number))
        return answer.error

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        """Refuse: this process cannot receive a running program."""
        raise ToolError(NO_START, kind="unsupported")

    async def run_program(self, request: ProgramRequest, stdin: bytes) -> SandboxResult:
        """Run the program in the tools worker and return its result. Raises ToolError."""
        if request.workspace not in (None, self._workspace):
            raise ToolError(
                f"A plugin in a process of its own can run programs in {self._workspace} or in none.",
                kind="unsupported",
            )
        if request.read_only:
            raise ToolError(
                "A plugin in a process of its own can give a program only the workspace to read.",
                kind="unsupported",
            )
        if len(stdin) > MAX_STDIN:
            raise ToolError(
                f"Standard input is too large: a plugin in a process of its own may send {MAX_STDIN} bytes.",
                kind="too_large",
            )
        answer = await self._calls.call(
            lambda number: SandboxHostCall(
                number=number,
                argv=request.argv,
                placed=request.workspace is not None,
                env=request.env,
                folder=request.folder,
                stdin=stdin,
                limits=asdict(request.limits),
                show_output=request.show_output,
            )
        )
        if answer.error is not None:
            raise ToolError(answer.error, kind=error_kind_named(answer.code))
        return msgspec.json.decode(answer.result, type=SandboxResult)
