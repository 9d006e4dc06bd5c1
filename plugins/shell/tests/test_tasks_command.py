"""``trunkline tasks``: the listing of background tasks, with and without a running platform."""

import json
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import anyio.to_thread
import pytest
from shell_worker import ShellWorker, needs_it, shell_worker, supervisor_of, until

from tests.support.commands import run_trunkline
from trunkline.contracts.sandbox.detached_program import DetachedProgram, list_programs

pytestmark = pytest.mark.anyio


async def tasks(worker: Path, *words: object) -> CompletedProcess[str]:
    """``trunkline tasks WORDS``."""
    return await anyio.to_thread.run_sync(partial(run_trunkline, worker, "tasks", *words))


async def started(worker: ShellWorker, command: str) -> str:
    said = await worker.call("start_background_task", command=command)
    assert said.status == "ok", said
    return said.output.split()[2]


@needs_it
async def test_a_person_sees_tasks_and_stops_them(tmp_path: Path) -> None:
    """Listed the newest first with state, block and command; shown with the end of the output, made harmless for a
    terminal; stopped by the beginning of an id, with all they began; all of it also when no platform runs."""
    place = tmp_path / "home"
    async with shell_worker(tmp_path) as worker:
        ended = await started(worker, "for i in 1 2 3; do echo line $i; done; printf '\\033[2J'; exit 3")
        assert "exit code 3" in (await worker.call("wait_background_task", task=ended)).output
        runs = await started(worker, "echo begun; sleep 600")
        await until(lambda: "begun" in DetachedProgram(place / "tasks" / "main" / runs).tail(9, 99))
    listed = await tasks(place, "list")
    header, first, second = listed.stdout.splitlines()
    assert header.split()[:2] == ["ID", "BLOCK"]
    assert first.split()[:2] == [runs, "main"] and "running for" in first and "sleep 600" in first
    assert second.split()[0] == ended and "ended with exit code 3" in second
    assert ended not in (await tasks(place, "list", "--running")).stdout
    assert runs not in (await tasks(place, "list", "--block", "other")).stdout
    shown = await tasks(place, "show", ended, "--lines", 2)
    assert "line 3\n" in shown.stdout and "line 2" not in shown.stdout
    assert "\x1b" not in shown.stdout and "␛[2J" in shown.stdout
    facts = json.loads((await tasks(place, "show", runs, "--json")).stdout)
    assert (facts["id"], facts["block"], facts["state"], facts["output"]) == (
        runs,
        "main",
        "running",
        "begun\n",
    )
    assert facts["command"] == ["sh", "-c", "echo begun; sleep 600"]
    stopped = await tasks(place, "stop", runs[:7], ended)
    assert stopped.stdout.splitlines() == [f"{runs}: cancelled", f"{ended}: ended with exit code 3"]
    every = json.loads((await tasks(place, "list", "--json")).stdout)["tasks"]
    assert [(one["id"], one["state"], one["killed"], one["exit_code"]) for one in every] == [
        (runs, "ended", "cancelled", None),
        (ended, "ended", None, 3),
    ]
    assert (await tasks(place, "clear")).stdout == "Forgot 2 tasks that had ended.\n"
    assert (await tasks(place, "list")).stdout == "There are no background tasks here.\n"


@needs_it
@pytest.mark.kill
async def test_a_task_whose_supervisor_does_not_answer_is_an_error(tmp_path: Path) -> None:
    """A task that does not end is reported as running, with a command that ends it."""
    async with shell_worker(tmp_path) as worker:
        task = await started(worker, "sleep 600")
        supervisor = supervisor_of(tmp_path / "home", task)
        supervisor.suspend()
        try:
            failed = await tasks(tmp_path / "home", "stop", task)
        finally:
            supervisor.resume()
        assert failed.returncode == 1
        assert f"{task} did not end" in failed.stderr and "trunkline panic" in failed.stderr
        (record,) = list_programs(tmp_path / "home" / "tasks" / "main")
        await until(lambda: record.status() == "ended")


async def test_unknown_and_ambiguous_ids_are_errors(tmp_path: Path) -> None:
    """One sentence, and what to do; nothing is stopped; a record that cannot be read is listed, not a crash."""
    for name in ("0a1b0000", "0a1b1111"):
        (tmp_path / "home" / "tasks" / "main" / name).mkdir(parents=True)
    (tmp_path / "home" / "tasks" / "main" / "0a1b0000" / "order.json").write_text("{")
    none = await tasks(tmp_path / "home", "show", "ffff")
    assert none.returncode == 1 and "'ffff'" in none.stderr and "trunkline tasks list" in none.stderr
    several = await tasks(tmp_path / "home", "stop", "0a1b")
    assert several.returncode == 1 and "0a1b0000" in several.stderr and "0a1b1111" in several.stderr
    listed = (await tasks(tmp_path / "home", "list")).stdout
    assert "0a1b0000" in listed and "lost" in listed
    assert "lost" in (await tasks(tmp_path / "home", "show", "0a1b0")).stdout
    for wrong in ("", "../main", "0a1b0000/../0a1b1111"):
        assert (await tasks(tmp_path / "home", "show", wrong)).returncode == 1
