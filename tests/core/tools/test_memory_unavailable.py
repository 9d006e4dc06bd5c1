"""A tools worker that has read no rules yet while memory is missing: a call waits for the rules, and never bypasses
them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.tools.messages import CallTool, CancelCall, ToolOutcome, ToolProgress
from trunkline.contracts.tools.subjects import CALL_TOOL, CANCEL_CALL
from trunkline.contracts.workers.messages import SpanRecord
from trunkline.contracts.workers.subjects import SPANS
from trunkline.runtime import guard_cache
from trunkline.telemetry import semconv
from trunkline_bus import new_id

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

SIGNS = 12
"""Signs of life, one a second, without memory: longer than one try to read the rules takes."""

NO_WRITING = Policy(subject="*", resource="tool:write_file", action="write", effect="deny")


class Call:
    """A call of a tool, and its outcome."""

    def __init__(self, running: ProcessPlatform, path: str) -> None:
        self.key = new_id("call")
        self._running = running
        self._path = path
        self.signs = 0
        self.outcome: ToolOutcome | None = None

    async def make(self) -> None:
        """Make it; a second without a sign of life, ten times over, and it fails."""
        request = CallTool(
            call=self.key, name="write_file", arguments={"path": self._path, "content": "x"}, block="main",
            conversation="conv_1", turn="turn_1", actor="owner",
        )  # fmt: skip
        async with self._running.bus.call_streaming(CALL_TOOL, request, idle_timeout=10.0) as replies:
            async for reply in replies:
                self.signs += isinstance(reply, ToolProgress)
                self.outcome = reply if isinstance(reply, ToolOutcome) else None

    async def waited(self) -> None:
        """Return when it has waited for longer than one try takes."""
        with anyio.fail_after(100):
            while self.signs < SIGNS:
                assert self.outcome is None, self.outcome
                await anyio.sleep(0.1)

    @property
    def written(self) -> bool:
        """Report whether the effect happened."""
        return (self._running.home.workspace("main") / self._path).exists()


@pytest.fixture(scope="module")
async def module_platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessPlatform]:
    home = tmp_path_factory.mktemp("away")
    async with process_platform(home, workers=("memory", "tools")) as running:
        yield running


@asynccontextmanager
async def without_memory(running: ProcessPlatform) -> AsyncIterator[None]:
    """Memory dies, and a tools worker begins that knows nothing; memory is back afterwards."""
    running.kill("memory")
    running.kill("tools")
    await running.restart("tools")
    try:
        yield
    finally:
        if not running.processes["memory"].alive:
            await running.restart("memory")


async def spans(running: ProcessPlatform, name: str) -> list[SpanRecord]:
    """The finished spans of this name, once there is one."""
    with anyio.fail_after(60):
        while True:
            batches = [stored.data async for stored in running.bus.history(SPANS)]
            found = [
                one for batch in batches for one in batch.spans if one.name == name and not one.unfinished
            ]
            if found:
                return found
            await anyio.sleep(0.1)


async def test_a_call_waits_for_memory_that_restarts(module_platform: ProcessPlatform) -> None:
    """Heartbeats keep the call alive, it runs when memory is back, and its trace names the wait."""
    call = Call(module_platform, "late.md")
    async with without_memory(module_platform), anyio.create_task_group() as tasks:
        tasks.start_soon(call.make)
        await call.waited()
        assert not call.written
        await module_platform.restart("memory")
    assert call.outcome is not None
    assert call.outcome.status == "ok", call.outcome
    assert call.written
    waits = await spans(module_platform, semconv.WAIT_FOR_MEMORY)
    tools = {one.span_id for one in await spans(module_platform, f"{semconv.EXECUTE_TOOL} write_file")}
    assert {one.parent_id for one in waits} <= tools
    assert max((one.end - one.start) / 1e9 for one in waits) > SIGNS / 2


async def test_a_waiting_call_is_decided_by_the_current_policies(module_platform: ProcessPlatform) -> None:
    """A denial that the worker never read before holds for a call that waited for it."""
    text = msgspec.json.encode(NO_WRITING).decode()
    files = {"policies/no-writing.json": text}
    await module_platform.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, gone=(), actor="owner"))
    call = Call(module_platform, "denied.md")
    try:
        async with without_memory(module_platform), anyio.create_task_group() as tasks:
            tasks.start_soon(call.make)
            await call.waited()
            await module_platform.restart("memory")
    finally:
        gone = WriteManyMemory(files={}, gone=("policies/no-writing.json",), actor="owner")
        await module_platform.bus.call(MEMORY_WRITE_MANY, gone)
    assert call.outcome is not None
    assert call.outcome.error_kind == "permission_denied", call.outcome
    assert not call.written


async def test_a_call_that_waits_can_be_cancelled(module_platform: ProcessPlatform) -> None:
    """The cancel does not wait for memory."""
    call = Call(module_platform, "cancelled.md")
    async with without_memory(module_platform):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call.make)
            await call.waited()
            await module_platform.bus.publish(
                CANCEL_CALL, CancelCall(reason="cancelled by owner"), call=call.key
            )
        assert call.outcome is not None
        assert call.outcome.error_kind == "cancelled"
        assert "was not run" in call.outcome.output
    assert not call.written


async def test_the_wait_has_an_end_and_then_the_call_is_refused(
    tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If memory does not return, nothing runs."""
    monkeypatch.setattr(guard_cache, "WAIT_SECONDS", 1.0)
    async with tools(memory=False) as caller:
        refused = await caller.call("write_file", {"path": "never.md", "content": "x"})
        assert refused.error_kind == "unavailable"
        assert "cannot be read now" in refused.output
        assert not (caller.workspace / "never.md").exists()
