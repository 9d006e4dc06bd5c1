"""Background tasks: through workers that are killed, in a real sandbox, seen from outside (MN-F15)."""

import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from shell_worker import ShellWorker, needs_it, shell_worker, supervisor_of, until

from tests.support.commands import run_trunkline
from tests.support.processes import process_platform
from trunkline.contracts.sandbox.detached_program import DetachedProgram, list_programs
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.tool_calls import call_tool

pytestmark = [pytest.mark.anyio, needs_it]

BEAT = "echo begun; while :; do echo x >> beat; sleep 0.1; done"
STUBBORN = 'trap "" TERM HUP; (setsid sh -c "while :; do echo x >> beat; sleep 0.1; done" &) ; sleep 60'


@pytest.fixture(autouse=True)
def none_is_left(tmp_path: Path) -> Iterator[None]:
    """Every process that a test started ends with it."""
    yield
    for record in _all(tmp_path):
        with suppress(OSError):
            record.request_cancel("cancelled")


def _all(base: Path) -> list[DetachedProgram]:
    return [
        record for folder in base.glob("**/tasks/*") if folder.is_dir() for record in list_programs(folder)
    ]


async def started(worker: ShellWorker, command: Any, **more: Any) -> str:
    """A task's id."""
    said = await worker.call("start_background_task", command=command, **more)
    assert said.status == "ok", said
    return said.output.split()[2]


def write_count(workspace: Path) -> int:
    """Return the number of the program's writes."""
    file = workspace / "beat"
    return file.stat().st_size if file.exists() else 0


async def wait_until_it_writes(workspace: Path) -> None:
    """Wait until the program writes again."""
    before = write_count(workspace)
    await until(lambda: write_count(workspace) > before)


async def has_stopped_writing(workspace: Path) -> bool:
    """Report whether the program has stopped writing, for a second."""
    before = write_count(workspace)
    await anyio.sleep(1.0)
    return write_count(workspace) == before


async def test_MN_F15_a_task_is_started_shown_awaited_and_cleared(tmp_path: Path) -> None:
    """Its last lines, its exit code, the list; ids are eight hexadecimal digits; the call does not wait for the end."""
    async with shell_worker(tmp_path) as worker:
        task = await started(worker, "for i in $(seq 100); do echo line $i; done; echo err >&2; exit 3")
        assert len(task) == 8 and int(task, 16) >= 0
        waited = await worker.call("wait_background_task", task=task)
        assert f"{task}: ended with exit code 3" in waited.output
        shown = (await worker.call("background_task_output", task=task)).output.splitlines()
        assert len(shown) == 51
        assert {"line 100", "err"} < set(shown)
        few = await worker.call("background_task_output", task=task, lines=2)
        assert len(few.output.splitlines()) == 3
        again = await started(worker, ["sleep", "60"])
        assert "running for" in (await worker.call("background_task_status", task=again)).output
        assert "running for" in (await worker.call("wait_background_task", task=again, timeout=1)).output
        listed = (await worker.call("list_background_tasks")).output.splitlines()
        assert [line[:8] for line in listed] == [again, task]
        assert re.search(r"started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d: sleep 60", listed[0])
        assert "Forgot 1 " in (await worker.call("clear_completed_tasks")).output
        assert "cancelled" in (await worker.call("cancel_background_task", task=again)).output
        missing = await worker.call("background_task_status", task=task)
        assert (missing.status, again in missing.output) == ("error", True)
        for wrong in ("../../x", "0", "zzzzzzzz", "0123456789", f"{again}/.."):
            assert (await worker.call("background_task_output", task=wrong)).status == "error"
        gone = await started(worker, ["no-such-program"])
        assert "exit code 127" in (await worker.call("wait_background_task", task=gone)).output
        assert (await worker.call("start_background_task", command="")).status == "error"
        assert (await worker.call("start_background_task", command=["true"], folder="no")).status == "error"


@pytest.mark.kill
async def test_MN_F15_a_task_survives_a_killed_worker(tmp_path: Path) -> None:
    """The task continues without any worker, the next worker finds it and does not restart it; panic ends it."""
    config = {"permissions.allow_shell": True}
    async with process_platform(
        tmp_path / "home", config=config, workers=("memory", "tools", "gateway")
    ) as platform:
        workspace = platform.home.workspace("main")
        call = partial(call_tool, platform.bus)
        begun = await call("start_background_task", {"command": f"echo once >> begun; {BEAT}"})
        task = begun.output.split()[2]
        platform.kill("tools")
        await wait_until_it_writes(workspace)
        await platform.restart("tools")
        listed: ToolOutcome = await call("list_background_tasks", {})
        assert f"{task}: running" in listed.output
        await wait_until_it_writes(workspace)
        assert (workspace / "begun").read_text() == "once\n"
        short = await call("start_background_task", {"command": "sleep 2; echo done; exit 5"})
        platform.kill("tools", signal.SIGTERM)
        await platform.processes["tools"].gone()
        await platform.restart("tools")
        name = {"task": short.output.split()[2]}
        assert "ended with exit code 5" in (await call("wait_background_task", name)).output
        platform.kill("tools")
        worker = platform.home.path
        supervisor = supervisor_of(worker, task)
        supervisor.suspend()  # it would heed panic itself
        done = await anyio.to_thread.run_sync(partial(run_trunkline, worker, "panic", "--json"))
        assert '"programs": 1' in done.stdout
        assert await has_stopped_writing(workspace)
        supervisor.resume()
        await until(lambda: DetachedProgram(worker / "tasks" / "main" / task).status() == "ended")
        assert await has_stopped_writing(workspace)
        KillSwitch(worker).release()
        await platform.restart("tools")
        assert "ended by panic" in (await call("background_task_status", {"task": task})).output
        assert await has_stopped_writing(workspace)


@pytest.mark.kill
async def test_MN_F15_a_task_whose_supervisor_is_killed_is_reported_as_lost(tmp_path: Path) -> None:
    """As after a restart of the machine, the program is gone too, and is not restarted."""
    async with shell_worker(tmp_path) as worker:
        task = await started(worker, BEAT)
        record = DetachedProgram(worker.running.home.path / "tasks" / "main" / task)
        await until(lambda: "begun" in record.tail(9, 99))
        await wait_until_it_writes(worker.workspace)
        supervisor_of(worker.running.home.path, task).kill()
        await until(lambda: record.status() == "lost")
        assert "lost: the machine was restarted, or" in (await worker.call("list_background_tasks")).output
        assert "begun" in (await worker.call("background_task_output", task=task)).output
        await anyio.sleep(0.5)
        assert await has_stopped_writing(worker.workspace)
    async with shell_worker(tmp_path) as worker:
        assert f"{task}: lost" in (await worker.call("background_task_status", task=task)).output
        assert await has_stopped_writing(worker.workspace)


async def test_ending_a_task_ends_its_child_processes(tmp_path: Path) -> None:
    """This holds for a cancel, a timeout and panic: no grandchild survives, by any trick."""
    async with shell_worker(tmp_path) as worker:
        task = await started(worker, STUBBORN)
        await wait_until_it_writes(worker.workspace)
        assert "cancelled" in (await worker.call("cancel_background_task", task=task)).output
        assert await has_stopped_writing(worker.workspace)
        again = await started(worker, STUBBORN)
        latch = KillSwitch(worker.running.home.path)
        latch.engage("a test")
        record = DetachedProgram(latch.home / "tasks" / "main" / again)
        await until(lambda: record.status() == "ended")
        assert await has_stopped_writing(worker.workspace)
        refused = await worker.call("start_background_task", command="true")
        assert (refused.status, "panic" in refused.output) == ("error", True)
        latch.release()


async def test_the_task_limit_holds_for_simultaneous_starts(tmp_path: Path) -> None:
    """This holds for any interleaving of calls; once a task has ended another can start."""
    _configure(tmp_path, "max_tasks = 2")
    async with shell_worker(tmp_path) as worker:
        said: list[ToolOutcome] = []

        async def one() -> None:
            said.append(await worker.call("start_background_task", command=["sleep", "60"]))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(one)
        assert sorted(outcome.status for outcome in said) == ["error", "ok", "ok"]
        assert "no more may" in next(outcome.output for outcome in said if outcome.status == "error")
        first = next(outcome.output.split()[2] for outcome in said if outcome.status == "ok")
        assert "cancelled" in (await worker.call("cancel_background_task", task=first)).output
        await started(worker, ["true"])


async def test_a_task_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """All its processes end too, and the timeout is reported."""
    _configure(tmp_path, "task_timeout = 1")
    async with shell_worker(tmp_path) as worker:
        task = await started(worker, STUBBORN)
        assert "it reached its time limit" in (await worker.call("wait_background_task", task=task)).output
        assert await has_stopped_writing(worker.workspace)


def _configure(base: Path, line: str) -> None:
    (base / "home").mkdir()
    (base / "home" / "trunkline.toml").write_text(f"[plugins.shell]\n{line}\n")


async def test_a_task_needs_the_permission_and_a_person_and_is_its_block_s(tmp_path: Path) -> None:
    """The rules are those of a command. Another block cannot see its tasks."""
    async with shell_worker(tmp_path / "no", approvals="some") as worker:
        assert "--allow-shell" in (await worker.call("start_background_task", command="true")).output
    async with shell_worker(tmp_path, approvals="some", allow_shell=True) as worker:
        asked = await worker.call("start_background_task", command="sleep 60")
        assert (asked.status, asked.detail.text) == ("approval", "sleep 60")
        assert (await worker.call("list_background_tasks")).output == "There are no background tasks."
        begun = await worker.approved("start_background_task", command="sleep 60")
        task = {"task": begun.output.split()[2]}
        foreign = await call_tool(worker.running.bus, "background_task_output", task, block="other")
        assert (foreign.status, "no background task" in foreign.output) == ("error", True)
        assert (await worker.call("cancel_background_task", **task)).status == "approval"
        assert "cancelled" in (await worker.approved("cancel_background_task", **task)).output


async def test_the_output_of_a_task_is_bounded_and_its_end_kept(tmp_path: Path) -> None:
    """Thirty megabytes leave the last lines, and take no more room than they may."""
    async with shell_worker(tmp_path) as worker:
        task = await started(worker, "yes 'a line' | head -c 30000000; echo the last one")
        waited = await worker.call("wait_background_task", task=task, timeout=60)
        assert waited.output.endswith("the last one")
        folder = worker.running.home.path / "tasks" / "main" / task
        assert sum(file.stat().st_size for file in folder.iterdir()) < 10_000_000
