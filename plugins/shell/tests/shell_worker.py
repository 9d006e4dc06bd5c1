"""A tools worker with the sandbox and a memory, as the tests here use it."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import psutil
import pytest

from trunkline._util.untrusted_text import unwrap_tool_result
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import assert_audited, call_tool

needs_it = pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed (apt install bubblewrap)"
)


class ShellWorker:
    """Calls tools of the block ``main``."""

    def __init__(self, running: Platform) -> None:
        self.running = running
        self.workspace = running.home.workspace("main")
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.refused: dict[str, str] = {}

    async def call(self, name: str, **arguments: Any) -> ToolOutcome:
        """Call a tool; a refused call must be in the audit log at the end. The output is returned without its mark."""
        said = await call_tool(self.running.bus, name, arguments)
        if said.status == "error":
            self.refused[said.call] = said.status
        return bare(said)

    async def run(self, command: list[str] | str, **more: Any) -> ToolOutcome:
        """Have a command executed."""
        return await self.call("execute_command", command=command, **more)

    async def approved(self, name: str, **arguments: Any) -> ToolOutcome:
        """Call a tool that asks, and say yes."""
        asked = await self.call(name, **arguments)
        assert asked.status == "approval", asked
        return bare(await call_tool(self.running.bus, name, arguments, approved=asked.call_hash))


def bare(outcome: ToolOutcome) -> ToolOutcome:
    """The outcome without the mark that says that it is data."""
    return msgspec.structs.replace(outcome, output=unwrap_tool_result(outcome.output))


@asynccontextmanager
async def shell_worker(base: Path, **permissions: Any) -> AsyncIterator[ShellWorker]:
    """Start such a worker, with these permissions for every block; without any, programs run without approval."""
    given = permissions or {"allow_shell": True, "approvals": "none"}
    config = {f"permissions.{name}": value for name, value in given.items()}
    async with platform(base / "home", config=config, workers=("memory", "tools", "gateway")) as running:
        found = ShellWorker(running)
        yield found
        await assert_audited(running.bus, found.refused)


async def until(holds: Any, seconds: float = 60.0) -> None:
    """Wait until something holds, asked again and again."""
    with anyio.fail_after(seconds):
        while not holds():  # noqa: ASYNC110  another process brings it about
            await anyio.sleep(0.05)


def supervisor_of(home: Path, task: str) -> psutil.Process:
    """Return the process that supervises a task."""
    words = ["trunkline.workers.tools.program_supervisor", str(home / "tasks" / "main" / task)]
    everybody = psutil.process_iter(["cmdline"])
    found = [one for one in everybody if (one.info["cmdline"] or [])[2:4] == words]
    assert len(found) == 1
    return found[0]
