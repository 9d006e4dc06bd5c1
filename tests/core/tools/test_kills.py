"""Tools workers as processes that are killed: no effect happens twice, and an unknown outcome is reported as
unknown."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from trunkline.contracts.streams import EFFECT_STREAM
from trunkline.contracts.tools.messages import (
    CheckLiveness,
    EffectFinished,
    EffectStarted,
    LivenessReply,
    ToolOutcome,
)
from trunkline.contracts.tools.subjects import CHECK_LIVENESS
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.contracts.workers.messages import SpanRecord
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry import semconv
from trunkline_bus import Bus, Request, service
from trunkline_bus.streams.jetstream import request_api

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

OUTSIDE = '''
import os, time
from pathlib import Path
import anyio
import trunkline

HERE = Path(__file__).parent

def happened(what):
    """An effect outside: one more line in a file, with the process that did it."""
    with open(HERE / what, "a") as file:
        file.write(f"{os.getpid()}\\n")

async def released():
    while not (HERE / "go").exists():
        await anyio.sleep(0.02)

@trunkline.tool(effect="write")
async def pay() -> str:
    """Pay, and wait."""
    happened("pay")
    await released()
    return f"paid by {os.getpid()}"

@trunkline.tool(effect="write", idempotent=True)
async def set_light() -> str:
    """Switch the light on, and wait."""
    happened("set_light")
    await released()
    return "on"

@trunkline.tool(effect="read")
async def look() -> str:
    """Look, and wait."""
    happened("look")
    await released()
    return "seen"

@trunkline.hookimpl
def trunkline_tools():
    return [pay, set_light, look]
'''


OUTAGE = 7.0
"""Seconds for which a server stands still: more than a cluster under load needs to elect."""


class Outside:
    """The effects of the tools, recorded outside of the platform."""

    def __init__(self, home: Any) -> None:
        self.folder = home / "test-plugins"

    def effects(self, tool: str) -> list[int]:
        """The processes that did it, in order."""
        file = self.folder / tool
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def release(self) -> None:
        """Let the tools end."""
        (self.folder / "go").touch()


def killed(running: Any, pid: int) -> None:
    """Kill the worker with this process id."""
    next(process for process in running.processes.values() if process.pid == pid).kill()


async def test_a_write_of_a_killed_worker_is_unknown_and_never_repeated(processes: Any) -> None:
    """Another worker tells the model to verify, and so does every repeat; the effect happened once."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        await running.start("tools", "second")
        outside, found = Outside(caller.home), []

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_pay"))

        tasks.start_soon(pay)
        await caller.until(lambda: bool(outside.effects("pay")))
        killed(running, outside.effects("pay")[0])
        await caller.until(lambda: bool(found), 50)
        assert found[0].status == "unknown"
        assert "The outcome of pay is unknown" in found[0].output
        assert "Check before you call it again" in found[0].output
        outside.release()
        again = await caller.call("pay", key="call_pay")
        assert (again.status, again.repeated) == ("unknown", True)
        assert len(outside.effects("pay")) == 1
        assert [type(one) for one in await caller.records("call_pay")] == [EffectStarted, EffectFinished]


@pytest.mark.parametrize("tool", ["look", "set_light"])
async def test_a_repeatable_call_is_run_again_by_another_worker(processes: Any, tool: str) -> None:
    """A read, and a write that is declared idempotent."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        await running.start("tools", "second")
        outside, found = Outside(caller.home), []

        async def act() -> None:
            found.append(await caller.call(tool, key="call_again"))

        tasks.start_soon(act)
        await caller.until(lambda: bool(outside.effects(tool)))
        killed(running, outside.effects(tool)[0])
        await caller.until(lambda: len(outside.effects(tool)) == 2, 50)
        outside.release()
        await caller.until(lambda: bool(found))
        assert found[0].status == "ok"
        first, second = outside.effects(tool)
        assert first != second


async def test_a_restarted_worker_reports_calls_of_its_predecessor(processes: Any) -> None:
    """The only worker is killed and another one starts: the call is unknown."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        outside, found = Outside(caller.home), []

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_pay"))

        tasks.start_soon(pay)
        await caller.until(lambda: bool(outside.effects("pay")))
        running.kill("tools")
        await running.restart("tools")
        await caller.until(lambda: bool(found), 50)
        assert found[0].status == "unknown"
        assert len(outside.effects("pay")) == 1


async def test_exactly_one_of_racing_workers_runs_the_call(processes: Any) -> None:
    """There are many callers, three workers and one effect, and every caller gets its outcome."""
    async with processes(outside=OUTSIDE) as (caller, running):
        await running.start("tools", "second")
        await running.start("tools", "third")
        outside = Outside(caller.home)
        for round in range(5):
            key, found = f"call_{round}", list[ToolOutcome]()
            (outside.folder / "go").unlink(missing_ok=True)

            async def pay(key: str = key, found: list[ToolOutcome] = found) -> None:
                found.append(await caller.call("pay", key=key))

            async with anyio.create_task_group() as tasks:
                for _ in range(12):
                    tasks.start_soon(pay)
                await caller.until(lambda: len(outside.effects("pay")) > round)  # noqa: B023
                outside.release()
            assert len(outside.effects("pay")) == round + 1
            assert {one.output for one in found} == {f"paid by {outside.effects('pay')[-1]}"}


async def test_a_cancel_reaches_the_worker_that_runs_the_call(processes: Any) -> None:
    """The cancel reaches any of three workers; workers that only wait for the call report the same outcome."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        await running.start("tools", "second")
        await running.start("tools", "third")
        outside, found = Outside(caller.home), list[ToolOutcome]()

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_pay"))

        for _ in range(6):
            tasks.start_soon(pay)
        await caller.until(lambda: bool(outside.effects("pay")))
        await caller.cancel("call_pay", "the turn was cancelled")
        await caller.until(lambda: len(found) == 6)
        assert {one.status for one in found} == {"unknown"}
        assert {one.output.partition(":")[0] for one in found} == {"pay was stopped before it ended"}
        assert len(outside.effects("pay")) == 1
        again = await caller.call("pay", key="call_pay")
        assert "pay was stopped before it ended" in again.output


async def test_the_server_may_be_killed_under_a_running_write(processes: Any) -> None:
    """The tool continues, its outcome is recorded when the server is back, and the effect happened once."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        outside, found = Outside(caller.home), []

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_pay"))

        tasks.start_soon(pay)
        await caller.until(lambda: bool(outside.effects("pay")))
        running.kill("nats")
        outside.release()
        await caller.until(lambda: bool(found), 50)
        assert found[0].status == "ok"
        assert len(outside.effects("pay")) == 1


async def test_a_ledger_that_does_not_answer_is_waited_for(processes: Any) -> None:
    """The server is suspended for longer than an election takes: no worker reports meanwhile that the call was not
    run."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        await running.start("tools", "second")
        outside, found = Outside(caller.home), list[ToolOutcome]()
        caller.silence = 30.0

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_pay"))

        for _ in range(8):  # one worker runs it, and the other one waits for it
            tasks.start_soon(pay)
        await caller.until(lambda: len(caller.progress) >= 16)
        running.kill("nats", signal.SIGSTOP)
        await anyio.sleep(OUTAGE)
        running.kill("nats", signal.SIGCONT)
        await anyio.sleep(1.0)  # for what was said meanwhile
        outside.release()
        await caller.until(lambda: len(found) == 8)
        assert {one.status for one in found} == {"ok"}
        assert len(outside.effects("pay")) == 1


@asynccontextmanager
async def no_room_in_the_ledger(bus: Bus) -> AsyncIterator[None]:
    """The stream takes nothing more, as on a full disk."""
    config = (await request_api(bus.link, f"STREAM.INFO.{EFFECT_STREAM}"))["config"]
    await request_api(
        bus.link, f"STREAM.UPDATE.{EFFECT_STREAM}", {**config, "discard": "new", "max_bytes": 1}
    )
    try:
        yield
    finally:
        await request_api(bus.link, f"STREAM.UPDATE.{EFFECT_STREAM}", config)


@pytest.mark.parametrize("tool", ["pay", "set_light"])
async def test_an_outcome_that_could_not_be_recorded_is_not_lost(processes: Any, tool: str) -> None:
    """The disk is full when the tool ends: its worker returns the outcome, also to repeated requests, and records it
    once there is room, so that callers of another worker get it too."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        await running.start("tools", "second")
        outside, found = Outside(caller.home), list[ToolOutcome]()

        async def act() -> None:
            found.append(await caller.call(tool, key="call_full"))

        tasks.start_soon(act)
        await caller.until(lambda: bool(outside.effects(tool)))
        async with no_room_in_the_ledger(caller.bus):
            outside.release()
            await caller.until(lambda: len(found) == 1)
            assert (found[0].status, found[0].repeated) == ("ok", False)
            for _ in range(8):  # both workers are asked
                tasks.start_soon(act)
            await caller.until(lambda: len(found) > 1)
        await caller.until(lambda: len(found) == 9)
        assert {(one.status, one.output) for one in found} == {("ok", found[0].output)}
        assert len(outside.effects(tool)) == 1
        assert [type(one) for one in await caller.records("call_full")] == [EffectStarted, EffectFinished]


async def test_a_call_dropped_by_a_live_worker_is_not_waited_for(processes: Any) -> None:
    """The ledger names the worker of the call; the call is waited for while that worker confirms it, and no longer."""
    at_work = True

    async def answer(request: Request[CheckLiveness]) -> LivenessReply:
        return LivenessReply(at_work=at_work or request.data.call != "call_left")

    async with (
        processes(outside=OUTSIDE) as (caller, _),
        service(caller.bus, name="holder", version="0.0.1") as holder,
        anyio.create_task_group() as tasks,
    ):
        await holder.add(CHECK_LIVENESS, answer, worker="tools_holder")
        started = EffectStarted(
            call="call_left", tool="pay", worker="tools_holder", effect="write", turn="turn_1"
        )
        await caller.bus.append(EFFECT, started, expect=0, call="call_left")
        found = list[ToolOutcome]()

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_left"))

        tasks.start_soon(pay)
        await caller.until(lambda: len(caller.progress) >= 3)
        assert found == []
        at_work = False
        await caller.until(lambda: bool(found))
        assert found[0].status == "unknown"
        assert Outside(caller.home).effects("pay") == []


async def test_a_draining_worker_returns_a_call_that_it_waits_for(processes: Any) -> None:
    """Another worker has the call, and this one waits for its outcome when it is drained. Its span records that it
    gave the call back, and counts as no tool call; the worker that is asked next returns the outcome, with the only
    tool span."""
    at_work = True

    async def answer(request: Request[CheckLiveness]) -> LivenessReply:
        return LivenessReply(at_work=at_work or request.data.call != "call_back")

    async with (
        processes(outside=OUTSIDE) as (caller, running),
        service(caller.bus, name="holder", version="0.0.1") as holder,
        anyio.create_task_group() as tasks,
    ):
        await holder.add(CHECK_LIVENESS, answer, worker="tools_holder")
        started = EffectStarted(
            call="call_back", tool="pay", worker="tools_holder", effect="write", turn="turn_1"
        )
        await caller.bus.append(EFFECT, started, expect=0, call="call_back")
        found = list[ToolOutcome]()

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_back", again=True))

        tasks.start_soon(pay)
        await caller.until(lambda: len(caller.progress) >= 2)
        await running.start("tools", "second")
        running.kill("tools", signal.SIGTERM)
        assert await running.processes["tools"].gone() == 0
        assert found == []
        at_work = False
        await caller.until(lambda: bool(found))
        assert found[0].status == "unknown"
        (back,) = await spans_of(caller.bus, "call_back", semconv.HAND_BACK)
        assert semconv.GEN_AI_OPERATION not in back.attributes
        (tool,) = await spans_of(caller.bus, "call_back", semconv.EXECUTE_TOOL)
        assert tool.attributes[semconv.TOOL_STATUS] == "unknown"


async def spans_of(bus: Bus, call: str, name: str) -> list[SpanRecord]:
    """The ended spans of this kind about a call, once there is one."""
    with anyio.fail_after(60):
        while True:
            batches = [stored.data async for stored in bus.history(SPANS)]
            spans = (one for batch in batches for one in batch.spans if not one.unfinished)
            found = [
                one for one in spans if one.name.startswith(name) and one.attributes.get(semconv.CALL) == call
            ]
            if found:
                return found
            await anyio.sleep(0.1)


async def test_a_drained_worker_finishes_its_calls(processes: Any) -> None:
    """SIGTERM during a call: the outcome reaches the caller, and the process leaves with 0."""
    async with processes(outside=OUTSIDE) as (caller, running), anyio.create_task_group() as tasks:
        outside, found = Outside(caller.home), []

        async def pay() -> None:
            found.append(await caller.call("pay", key="call_pay"))

        tasks.start_soon(pay)
        await caller.until(lambda: bool(outside.effects("pay")))
        os.kill(outside.effects("pay")[0], signal.SIGTERM)
        outside.release()
        await caller.until(lambda: bool(found), 50)
        assert (found[0].status, found[0].repeated) == ("ok", False)
        assert await running.processes["tools"].gone() == 0
