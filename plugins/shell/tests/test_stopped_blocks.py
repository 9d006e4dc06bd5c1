"""Background tasks end with their block: it is stopped, reset, archived or deleted, and nothing of it runs on."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest
from shell_worker import ShellWorker, needs_it, shell_worker
from test_background import BEAT, STUBBORN, has_stopped_writing, wait_until_it_writes, write_count

from tests.support.commands import run_trunkline
from tests.support.processes import process_platform
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.contracts.sandbox.detached_program import DetachedProgram, list_programs, programs_folder
from trunkline.testing.tool_calls import call_tool

pytestmark = [pytest.mark.anyio, needs_it]

FREE = BlockConfig(permissions=PermissionTable(allow_shell=True, approvals="none"))

AWAY: dict[str, Callable[[GatewayClient], Awaitable[object]]] = {
    "reset": lambda gateway: gateway.reset_block("garden", hard=True),
    "archive": lambda gateway: gateway.archive_block("garden"),
    "delete": lambda gateway: gateway.delete_block("garden"),
}


async def begun(worker: ShellWorker, block: str, script: str) -> DetachedProgram:
    """A task of a block that writes into the block's workspace."""
    said = await call_tool(worker.running.bus, "start_background_task", {"command": script}, block=block)
    assert said.status == "ok", said
    await wait_until_it_writes(worker.running.home.workspace(block))
    return DetachedProgram(programs_folder(worker.running.home.path, block) / said.output.split()[2])


async def test_a_stop_ends_and_reports_the_tasks_of_the_block(tmp_path: Path) -> None:
    """All their processes end too; tasks of other blocks continue. With --finish no task is ended."""
    async with shell_worker(tmp_path) as worker:
        await worker.running.gateway.create_block("garden", FREE)
        mine = [await begun(worker, "garden", script) for script in (BEAT, STUBBORN)]
        other = await begun(worker, "main", BEAT)
        run = partial(run_trunkline, worker.running.home.path, "blocks", "stop", "garden")
        finish = await anyio.to_thread.run_sync(partial(run, "--finish"))
        assert finish.returncode == 0
        asked = await anyio.to_thread.run_sync(partial(run, stdin="n\n"))
        assert "2 of its background tasks run and are ended." in asked.stderr, asked
        assert [one.status() for one in mine] == ["running"] * 2
        done = await anyio.to_thread.run_sync(partial(run, "--yes"))
        assert "2 of its background tasks were ended." in done.stdout, done
        assert [one.status() for one in mine] == ["ended"] * 2
        shown = await anyio.to_thread.run_sync(
            partial(run_trunkline, worker.running.home.path, "tasks", "show", mine[0].name)
        )
        assert "ended, because its block was stopped" in shown.stdout
        assert await has_stopped_writing(worker.running.home.workspace("garden"))
        assert other.status() == "running"
        other.request_cancel("cancelled")


@pytest.mark.parametrize("how", AWAY)
async def test_tasks_of_a_deleted_block_stop_writing(tmp_path: Path, how: str) -> None:
    """Its folder holds still before it is moved, and a new block of its name knows nothing of its tasks."""
    async with shell_worker(tmp_path) as worker:
        gateway, places = worker.running.gateway, worker.running.home
        await gateway.create_block("garden", FREE)
        record = await begun(worker, "garden", STUBBORN)
        await AWAY[how](gateway)
        assert record.status() == "lost" and list_programs(programs_folder(places.path, "garden")) == []
        workspace = places.workspace("garden")
        if how == "archive":
            (workspace,) = (places.workspaces / ".archive").iterdir()
            assert write_count(workspace) > 0
        assert await has_stopped_writing(workspace)
        if how != "reset":
            await gateway.create_block("garden", FREE)
        listed = await call_tool(worker.running.bus, "list_background_tasks", {}, block="garden")
        assert "There are no background tasks." in listed.output


@pytest.mark.kill
async def test_tasks_end_after_their_tools_worker_was_killed(tmp_path: Path) -> None:
    """A task outlives its worker; the gateway ends it where no worker is left that could."""
    config = {"permissions.allow_shell": True}
    workers = ("memory", "tools", "gateway")
    async with process_platform(tmp_path / "home", config=config, workers=workers) as platform:
        gateway = GatewayClient(platform.bus, "cli", timeout=60.0)
        await gateway.create_block("garden", FREE)
        said = await call_tool(platform.bus, "start_background_task", {"command": BEAT}, block="garden")
        assert said.status == "ok", said
        await wait_until_it_writes(platform.home.workspace("garden"))
        platform.kill("tools")
        await wait_until_it_writes(platform.home.workspace("garden"))
        await gateway.archive_block("garden")
        (away,) = (platform.home.workspaces / ".archive").iterdir()
        assert write_count(away) > 0 and await has_stopped_writing(away)
        await platform.restart("tools")
        await gateway.restore_block("garden")
        assert await has_stopped_writing(platform.home.workspace("garden"))
