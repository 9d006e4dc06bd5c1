"""CC-T10: runs go on where they were after SIGKILLs of any worker at any step, and no step has its effect twice."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.integration.shared_platforms import ALL_WORKERS, shared_platform
from tests.support.processes import ProcessPlatform, process_platform
from trunkline_workflow.definition import parse_definition
from trunkline_workflow.runs import Runs, RunView

from .workflow_tools import DEPLOY_APP, SETTINGS, effects, workflow

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

TOOLS = '''
"""Tools that append a line for each effect, and then wait until the test lets them end."""
import anyio
import trunkline


async def held(context, mark):
    with (context.workspace / "effects").open("a") as file:
        file.write(mark + "\\n")
    while (context.workspace / f"hold-{mark}").exists():
        await anyio.sleep(0.02)


@trunkline.tool(effect="write")
async def effect(context: trunkline.ToolContext, mark: str, result: str = "") -> str:
    """Have an effect."""
    await held(context, mark)
    return result


@trunkline.tool(effect="read")
async def look(context: trunkline.ToolContext, mark: str) -> str:
    """Look, which may be repeated."""
    await held(context, mark)
    return '{"seen": true}'


@trunkline.hookimpl
def trunkline_tools():
    return [effect, look]
'''

STEPS = workflow(
    "steps",
    "id: one, type: action, action: effect, args: {mark: one}, next: two",
    "id: two, type: action, action: effect, args: {mark: two}, next: three",
    "id: three, type: action, action: look, args: {mark: three}, next: four",
    "id: four, type: conditional, action: seen, on_approve: five",
    "id: five, type: action, action: effect, args: {mark: five}, retry: {times: 3}, on_error: six",
    "id: six, type: action, action: effect, args: {mark: 'six {{ steps.three.seen }}'}",
)


@pytest.fixture(scope="module")
async def module_platform(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    home = tmp_path_factory.mktemp("workflow-kills")
    async with process_platform(
        home, config=SETTINGS, plugins={"held": TOOLS}, workers=ALL_WORKERS
    ) as running:
        yield running


@pytest.fixture
async def running(module_platform: ProcessPlatform) -> AsyncIterator[ProcessPlatform]:
    async with shared_platform(module_platform) as ready:
        yield ready


async def begin(running: ProcessPlatform, block: str, text: str, **inputs: str) -> tuple[Runs, RunView]:
    await running.gateway.create_block(block)
    runs, definition = Runs(running.bus, block), parse_definition(text)
    await runs.files.install(definition.name, text, proposed=False)
    return runs, await runs.view(await runs.begin(definition, inputs))


async def until(runs: Runs, view: RunView, *statuses: str) -> RunView:
    with anyio.fail_after(120):
        while view.status not in statuses or (view.journal.waiting and not view.approvals):
            await anyio.sleep(0.05)
            view = await runs.view(view.record)
    return view


async def has_effect(workspace: Path, mark: str) -> None:
    with anyio.fail_after(120):
        while mark not in effects(workspace):  # noqa: ASYNC110 - another process writes the file
            await anyio.sleep(0.02)


async def test_CC_T10_everything_is_killed_while_a_run_waits(running: ProcessPlatform) -> None:
    """CC-T10: all workers and the server are killed while the run waits, and started again. Approved then, the run goes
    on at the next step; build is not run again. A second approval is refused."""
    runs, view = await begin(running, "waits", DEPLOY_APP, version="1")
    view = await until(runs, view, "waiting_approval")
    for name in (*running.processes, "nats"):
        running.kill(name)
    await running.start_all(ALL_WORKERS)
    view = await until(runs, view, "waiting_approval")
    (asked,) = view.approvals
    await runs.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True)
    view = await until(runs, view, "completed", "failed")
    assert view.status == "completed", view.detail
    assert effects(running.home.workspace("waits")) == ["build", "deploy"]
    assert not await runs.gateway.waiting()


async def test_CC_T10_workers_are_killed_at_each_step(running: ProcessPlatform) -> None:
    """CC-T10: while a step runs, the monitor, the gateway, or the tools worker is killed. Every effect happens once; a
    call that only reads is repeated; and one that may have had its effect is not, although it has ``retry``."""
    workspace = running.home.workspace("steps")
    workspace.mkdir(parents=True, exist_ok=True)
    killed = {"one": "monitor", "two": "gateway", "three": "tools", "five": "tools"}
    for mark in killed:
        (workspace / f"hold-{mark}").touch()
    runs, view = await begin(running, "steps", STEPS)
    for mark, worker in killed.items():
        await has_effect(workspace, mark)
        running.kill(worker)
        await running.restart(worker)
        (workspace / f"hold-{mark}").unlink()
    view = await until(runs, view, "completed", "failed")
    assert view.status == "completed", view.detail
    found = effects(workspace)
    assert [mark for mark in found if mark != "three"] == ["one", "two", "five", "six true"]
    assert found.count("three") >= 1
    five = next(visit for visit in view.state.visits if visit.step == "five")
    assert (five.state, five.attempts) == ("failed", 1)
