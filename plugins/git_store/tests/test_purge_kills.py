"""A purge that is killed at any step is finished by the next one: no copy of the text is left, and its record says
so."""

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import pytest

from tests.support.commands import run_trunkline
from tests.support.home_search import files_holding
from trunkline.testing.platform import clean_environ, platform

pytestmark = pytest.mark.kill

MARK = "Zebraquartz7431"

KILLED = textwrap.dedent(
    '''
    """Purges as the command does, in this process, and kills it at a step."""
    import inspect, os, signal, sys

    from trunkline.cli.main import main
    from trunkline_git_store.committer import Committer
    from trunkline.workers.memory.purge.purge_log import PurgeLog
    from trunkline_git_store.purge.object_sweeper import ObjectSweeper
    from trunkline_git_store.repository import Repository
    from trunkline_bus import Bus

    KINDS = {kind.__name__: kind for kind in (Committer, PurgeLog, ObjectSweeper, Repository, Bus)}
    kind, method, when, count = sys.argv[1].split(":")
    real, calls = getattr(KINDS[kind], method), [0]

    def die(now):
        if now == when and calls[0] == int(count):
            os.kill(os.getpid(), signal.SIGKILL)

    def plain(self, *given, **named):
        calls[0] += 1
        die("before")
        result = real(self, *given, **named)
        die("after")
        return result

    async def awaited(self, *given, **named):
        calls[0] += 1
        die("before")
        result = await real(self, *given, **named)
        die("after")
        return result

    setattr(KINDS[kind], method, awaited if inspect.iscoroutinefunction(real) else plain)
    sys.argv = ["trunkline", "memory", "purge", sys.argv[2], "--confirm", sys.argv[2]]
    main()
    '''
)

STEPS = (
    "PurgeLog:begin:after:1",
    "Bus:erase:after:3",
    "Repository:move_references:after:1",
    "ObjectSweeper:sweep:before:1",
    "PurgeLog:finish:before:1",
)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home in which a conversation ended, and that conversation."""
    home = tmp_path_factory.mktemp("stopped") / "home"

    async def talk() -> str:
        async with platform(home) as running:
            return (await running.say(f"/tool write_file path=a.md content={MARK}")).accepted.conversation

    return home, anyio.run(talk)


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_purge_is_finished_by_the_next_one(
    stopped: tuple[Path, str], step: str, tmp_path: Path
) -> None:
    """A process is killed at each step of the purge."""
    home, conversation = tmp_path / "home", stopped[1]
    shutil.copytree(stopped[0], home, symlinks=True)
    assert "memory/.git" in files_holding(home, MARK.encode())
    environ = clean_environ() | {"TRUNKLINE_HOME": str(home)}
    died = subprocess.run(
        [sys.executable, "-c", KILLED, step, conversation], env=environ, timeout=120, check=False
    )
    assert died.returncode == -9
    again = run_trunkline(home, "memory", "purge", conversation, "--confirm", conversation, "--json")
    assert again.returncode == 0, again.stderr
    assert str(home / "workspaces") in {kept["where"] for kept in json.loads(again.stdout)["kept"]}
    assert {name.split("/")[0] for name in files_holding(home, MARK.encode())} == {"workspaces"}
    (line,) = (home / "memory/audit/purges.jsonl").read_text().splitlines()
    note = json.loads(line)
    assert note["state"] == "done" and any(conversation in path for path in note["paths"])
