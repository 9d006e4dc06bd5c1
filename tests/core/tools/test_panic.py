"""Panic where programs run: all are ended, nothing is begun, until it is released (CC-F17, CC-T12, C31)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import clean_environ

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

BEAT = "while :; do echo x >> beat-$0; sleep 0.1; done"

ALONE = """
import anyio, pathlib, sys
from trunkline.plugins import Plugins
from trunkline.config import load_config

async def main():
    (owned,) = Plugins.load(load_config()).sandboxes()[:1]
    argv = ("sh", "-c", sys.argv[2], "alone")
    await owned.item.run(argv, workspace=pathlib.Path(sys.argv[1]), env={})

anyio.run(main)
"""
"""A process that runs a program, and is no worker that anybody could tell anything."""


def cli(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The program, on this home."""
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    command = [sys.executable, "-m", "trunkline.cli.main", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def beats(workspace: Path) -> dict[str, int]:
    """Return the size of each file that a program writes to while it runs."""
    return {file.name: file.stat().st_size for file in workspace.glob("beat-*")}


def alone(command: list[str], environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start a process that continues by itself."""
    return subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)


async def are_still(workspace: Path) -> None:
    """No program writes any more, for a second."""
    with anyio.fail_after(60):
        before: dict[str, int] = {}
        while before != (now := beats(workspace)):
            before = now
            await anyio.sleep(1.0)


async def test_cc_t12_panic_ends_every_program_and_starts_none(tools: Any, tmp_path: Path) -> None:
    """Five programs of calls are gone, every caller gets the reason, and nothing runs until the release."""
    source = tmp_path / "sources" / "beat"
    source.mkdir(parents=True)
    manifest = {"name": "beat", "description": "Beats.", "parameters": {"type": "object"}}
    command = ["sh", "-c", f"n=$(cat /proc/sys/kernel/random/uuid); exec sh -c '{BEAT}' $n"]
    (source / "tool.json").write_text(json.dumps({**manifest, "command": command}))
    config = {"permissions.allow_shell": True, "runtime.tool_sources": [str(source.parent)]}
    async with tools(config=config) as caller:
        outcomes = []

        async def call() -> None:
            outcomes.append(await caller.call("beat"))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(call)
            await caller.until(lambda: len(beats(caller.workspace)) == 5)
            done = await anyio.to_thread.run_sync(cli, caller.home, "panic", "--json")
            assert json.loads(done.stdout)["failed"] == [], done.stderr
            with anyio.fail_after(60):
                await caller.until(lambda: len(outcomes) == 5)
        assert all("panic" in outcome.output for outcome in outcomes), (outcomes, done.stdout)
        await are_still(caller.workspace)
        for name in ("beat", "read_file"):
            refused = await caller.call(name, {} if name == "beat" else {"path": "x"})
            assert (refused.status, "trunkline panic --release" in refused.output) == ("error", True)
        assert len(beats(caller.workspace)) == 5
    assert KillSwitch(tmp_path / "home").is_engaged
    async with tools(config=config) as caller:
        assert "panic" in (await caller.call("beat")).output
        released = await anyio.to_thread.run_sync(cli, caller.home, "panic", "--release")
        assert "Everything was released" in released.stdout
        assert (await caller.call("list_directory", {})).status == "ok"


async def test_panic_ends_programs_unknown_to_all_workers(tmp_path: Path) -> None:
    """Without a bus and without a worker: the programs of another process of this home, and none of another home."""
    home_folders = [tmp_path / name for name in ("home", "other")]
    workspaces = [tmp_path / f"workspace-{home.name}" for home in home_folders]
    begun = []
    try:
        for home, workspace in zip(home_folders, workspaces, strict=True):
            workspace.mkdir()
            environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
            command = [sys.executable, "-c", ALONE, str(workspace), BEAT]
            begun.append(alone(command, environ))
        with anyio.fail_after(30):
            while not all(map(beats, workspaces)):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        done = await anyio.to_thread.run_sync(cli, home_folders[0], "panic", "--json")
        nobody = {"bus": False, "stopped": [], "silent": []}
        assert json.loads(done.stdout) == {"programs": 1, "failed": [], **nobody}
        await are_still(workspaces[0])
        alive = beats(workspaces[1])
        with anyio.fail_after(60):
            while beats(workspaces[1]) == alive:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        again = await anyio.to_thread.run_sync(cli, home_folders[0], "panic")
        assert "This command ended 0 programs" in again.stdout and "No platform was reached" in again.stdout
    finally:
        for process in begun:
            process.kill()
            process.wait()
    await are_still(workspaces[1])


def test_a_kill_switch_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """The programs are ended, the command fails, and names the remaining step."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "panic.json").mkdir()
    done = cli(home, "panic", "--release")
    assert done.returncode == 1
    assert "cannot be removed" in done.stderr
    assert KillSwitch(home).is_engaged
    assert os.path.isdir(home / "panic.json")  # noqa: PTH112


def test_panic_works_despite_a_wrong_setting(tmp_path: Path) -> None:
    """The latch is pulled, so workers that run stop; the command fails and names the setting."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "trunkline.toml").write_text("[gateway]\nprot = 1\n")
    done = cli(home, "panic")
    assert done.returncode == 1
    assert "prot" in done.stderr
    assert KillSwitch(home).is_engaged
