"""The messages of an isolated plugin, and the tools worker's handling of them: a stand-in plays the process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trunkline.api.tool import ToolSpec
from trunkline.config.plugin_host import PluginHostSettings
from trunkline.contracts.plugins.messages import (
    HostCallAcknowledged,
    HostCallReply,
    PluginToolEnded,
    PluginToolReply,
    RunPluginTool,
    SandboxHostCall,
)
from trunkline.contracts.plugins.subjects import HOST_CALL_REPLY, RUN_PLUGIN_TOOL
from trunkline.contracts.sandbox.program_request import ProgramRequest, SandboxLimits
from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxResult
from trunkline.contracts.tools.messages import ToolProgress
from trunkline.errors import OutcomeUnknown, ToolError
from trunkline.testing.contexts import tool_context
from trunkline.testing.platform import platform
from trunkline.workers.tools.isolated_tools import IsolatedTool
from trunkline.workers.tools.sandboxes import ProgramBounds
from trunkline_bus import Bus, Refusal, Request, service

pytestmark = pytest.mark.anyio

SPEC = ToolSpec(name="act", description="Act.", effect="write", parameters={})
Replies = Callable[[RunPluginTool], AsyncIterator[PluginToolReply]]


@asynccontextmanager
async def process_bus(replies: Replies, home: Path) -> AsyncIterator[tuple[Bus, list[HostCallReply]]]:
    """A bus on which ``replies`` are the messages of the process; the list collects what it is sent."""
    answers: list[HostCallReply] = []

    async def run(request: Request[RunPluginTool]) -> AsyncIterator[PluginToolReply]:
        async for reply in replies(request.data):
            yield reply

    async def answered(request: Request[HostCallReply]) -> HostCallAcknowledged:
        answers.append(request.data)
        return HostCallAcknowledged()

    async with (
        platform(home, workers=()) as found,
        service(found.bus, name="acme", version="0.0.1") as served,
    ):
        await served.add(RUN_PLUGIN_TOOL, run, plugin="acme")
        await served.add(HOST_CALL_REPLY, answered, plugin="acme")
        yield found.bus, answers


async def test_a_process_that_crashes_in_a_call_gives_unknown(tmp_path: Path) -> None:
    """The process had the call, so its outcome is unknown; a call that it never received was not run; a repeatable
    one may be sent again."""
    effects = []

    async def failing(call: RunPluginTool) -> AsyncIterator[PluginToolReply]:
        effects.append(call.name)
        yield ToolProgress(call=call.call, note="it is done")
        raise Refusal("internal", "Something went wrong.")

    context = tool_context(tmp_path)
    async with process_bus(failing, tmp_path / "home") as (bus, _):
        with pytest.raises(
            OutcomeUnknown, match=r"outcome of act is unknown.*acme ended or failed while it ran act"
        ):
            await IsolatedTool(SPEC, "acme", bus, PluginHostSettings())(context, {})
        assert effects == ["act"]
        looking = replace(SPEC, effect="read")
        with pytest.raises(ToolError, match="is safe to repeat") as reported:
            await IsolatedTool(looking, "acme", bus, PluginHostSettings())(context, {})
        assert not isinstance(reported.value, OutcomeUnknown)
        with pytest.raises(ToolError, match="was not run") as reported:
            await IsolatedTool(SPEC, "nobody", bus, PluginHostSettings())(context, {})
        assert not isinstance(reported.value, OutcomeUnknown)


class Watched(Sandbox):
    """Notes within which limits a program was to run."""

    name = "watched"

    def __init__(self) -> None:
        self.asked: list[SandboxLimits] = []

    async def unavailable(self) -> str | None:
        return None

    async def start_program(self, request: ProgramRequest) -> Any:
        raise AssertionError("nothing is begun")

    async def run_program(self, request: ProgramRequest, stdin: bytes) -> SandboxResult:
        self.asked.append(request.limits)
        return SandboxResult(stdout=b"", stderr=b"", exit_code=0, seconds=0.0)


async def test_an_isolated_plugin_cannot_raise_the_owners_program_limits(
    tmp_path: Path,
) -> None:
    """Time, memory, processors, processes and output; it may choose lower ones, and so for its tools' timeout."""
    greedy = SandboxLimits(timeout=1e9, memory=10**6, cpus=512.0, processes=10**6, output=10**9)
    modest = SandboxLimits(timeout=1.0, memory=16, cpus=0.5, processes=2, output=100)

    async def requesting(call: RunPluginTool) -> AsyncIterator[PluginToolReply]:
        for number, limits in enumerate((greedy, modest)):
            yield SandboxHostCall(number=number, argv=("true",), limits=asdict(limits))
        yield PluginToolEnded(status="ok")

    sandbox = Watched()
    hosting = PluginHostSettings(
        isolation_memory=300, isolation_timeout=20.0, isolation_cpus=2.0, isolation_processes=9
    )
    async with process_bus(requesting, tmp_path / "home") as (bus, answers):
        tool = IsolatedTool(replace(SPEC, timeout=1e9), "acme", bus, hosting)
        await tool(tool_context(tmp_path, sandbox=sandbox), {})
        assert tool.spec.timeout == 20.0
        assert [answer.error for answer in answers] == [None, None]
    first, second = sandbox.asked
    assert (first.timeout, first.memory, first.cpus, first.processes) == (20.0, 300, 2.0, 9)
    assert first.output == 30_000 and second == modest


@pytest.mark.parametrize("field", ["timeout", "memory", "cpus", "processes", "output"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_an_invalid_limit_is_refused(field: str, value: float) -> None:
    """A backend takes 0 for no limit at all, and less than nothing for anything."""
    with pytest.raises(ToolError, match="above 0"):
        ProgramBounds().bound(SandboxLimits(**{field: value}))
