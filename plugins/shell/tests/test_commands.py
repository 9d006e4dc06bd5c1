"""``execute_command`` as an agent has it: through a tools worker, in a real sandbox, seen from outside."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell_worker import ShellWorker, needs_it, shell_worker

import trunkline
from tests.background_turns import has, in_background, until
from tests.support.commands import run_trunkline
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.contracts.turns.journal_messages import TurnPreempted
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.testing.tool_calls import call_tool, write_permissions

pytestmark = [pytest.mark.anyio, needs_it]

T = TypeVar("T")


async def test_MN_T7_output_exit_code_and_errors(tmp_path: Path) -> None:
    """Echo, an exit code, standard error, and a missing program: each is reported exactly."""
    async with shell_worker(tmp_path) as worker:
        for command in (["echo", "a  b; $HOME"], "echo 'a  b; $HOME'", '["echo", "a  b; $HOME"]'):
            said = await worker.run(command)
            assert said.status == "ok"
            assert re.fullmatch(r"exit code 0, \d+\.\d s\n--- stdout\na  b; \$HOME", said.output)
        said = await worker.run("echo out; echo err >&2; exit 3")
        assert said.output.startswith("exit code 3,")
        assert said.output.endswith("--- stdout\nout\n--- stderr\nerr")
        assert "no such program" in (await worker.run(["no-such-program"])).output
        assert "printed nothing" in (await worker.run(["true"])).output
        (worker.workspace / "inner").mkdir()
        assert (await worker.call("execute_bash", command="exit 4")).output.startswith("exit code 4,")
        assert "/workspace/inner" in (await worker.run(["pwd"], folder="inner")).output


async def test_MN_T7_a_timed_out_command_leaves_no_process(tmp_path: Path) -> None:
    """Within five seconds the error has the output up to then; no grandchild survives, by any trick."""
    beat = 'trap "" TERM HUP; (setsid sh -c "while :; do echo x >> beat; sleep 0.1; done" &) ; echo part; sleep 60'
    async with shell_worker(tmp_path) as worker:
        for _ in range(3):  # a machine that is busy with something else gets another chance
            begun = time.monotonic()
            said = await worker.run(beat, timeout=1)
            took = time.monotonic() - begun
            if took < 5:
                break
        assert (said.status, took < 5) == ("error", True), took
        assert "with all that it had begun" in said.output
        assert said.output.endswith("--- stdout\npart")
        file = worker.workspace / "beat"
        before = file.stat().st_size
        await anyio.sleep(1.0)
        assert file.stat().st_size == before


async def test_CC_T3_a_background_turn_that_ignores_its_end_is_killed(tmp_path: Path) -> None:
    """A background turn is preempted while its program runs, and the program is not interrupted. When a person cancels
    the waiting turn, the program, which ignores the signals, is killed in its sandbox. The lane goes on with the next
    turn."""
    command = 'trap "" TERM HUP INT; while :; do echo x >> beat; sleep 0.1; done'
    config = {
        "monitor.concurrency": 1,
        "permissions.allow_shell": True,
        "runtime.provider_adapter": "scripted",
    }
    async with platform(tmp_path / "home", plugins=[ScriptedPlugin()], config=config) as running:
        file = running.home.workspace("main") / "beat"
        call = f"call:execute_command {json.dumps({'command': command})} ;; say:never"
        stubborn = await in_background(running, call)
        after = await in_background(running, "say:after")
        await until(lambda: _grows(file))
        assert (await running.say("say:person")).text == "person"
        await has(running, stubborn, TurnPreempted)
        await until(lambda: _grows(file))
        await running.gateway.cancel(stubborn.turn)
        assert (await running.answer(stubborn)).ended.reason == "cancelled"
        assert (await running.answer(after)).text == "after"
        await until(lambda: _stands_still(file))


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


async def _grows(file: Path) -> bool:
    before = _size(file)
    await anyio.sleep(0.3)
    return _size(file) > before


async def _stands_still(file: Path) -> bool:
    before = _size(file)
    await anyio.sleep(1.5)
    return _size(file) == before


class ScriptedPlugin:
    """A plugin that brings a scripted model."""

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [ScriptedModel()]


async def test_output_is_bounded(tmp_path: Path) -> None:
    """Of ten megabytes the beginning and the end are returned, within 50 000 characters; the same holds for bytes
    that are not text."""
    async with shell_worker(tmp_path) as worker:
        said = await worker.run("echo first; yes middle | head -c 10000000; echo; echo last; echo oops >&2")
        assert len(said.output) < 51_000
        assert "--- stdout\nfirst\n" in said.output
        assert "last\n--- stderr\noops" in said.output
        assert "characters left out" in said.output
        assert (await worker.run("printf '\\377\\000\\033[31m'")).status == "ok"


async def test_MB_T8_a_block_without_the_permission_and_with_it(tmp_path: Path) -> None:
    """Refused with the command that grants it; once a person has granted it the same call is asked about, shown as it
    would be run, and runs after a yes. A denial of it takes it back."""
    async with shell_worker(tmp_path, approvals="some") as worker:
        grant = partial(anyio.to_thread.run_sync, partial(_permissions, worker.running.home.path))
        refused = await worker.run("touch made")
        assert refused.status == "error"
        assert "trunkline permissions main --allow-shell" in refused.output
        assert (await worker.run(["ls"])).status == "error"
        await grant("--allow-shell")
        with anyio.fail_after(60):
            while (asked := await worker.run("touch made; ls")).status == "error":  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert asked.status == "approval"
        assert asked.detail.text == "touch made; ls"
        assert not list(worker.workspace.iterdir())
        assert (await worker.approved("execute_command", command="touch made; ls")).output.endswith("made")
        assert (await worker.run(["ls"])).status == "ok"
        network = await worker.approved("execute_command", command="true", network=True)
        assert "trunkline permissions main --allow-network" in network.output


def _permissions(worker: Path, choice: str) -> None:
    done = run_trunkline(worker, "permissions", "main", choice)
    assert done.returncode == 0, done.stderr


ASKED = [
    "ls; rm -rf x", "echo $(rm x)", "find . -delete", "git diff --output=f", "ls && rm x", "ls | tee x", "cat x > y",
    "LD_PRELOAD=./x ls", "./ls", ["find", ".", "-delete"], ["git", "diff", "--output=f"], ["sh", "-c", "ls"],
    ["env", "ls"], ["sort", "-o", "x", "x"], ["sed", "-i", "s/a/b/", "x"],
    '["ls"]', "",
]  # fmt: skip


SCRIPTS = st.lists(
    st.sampled_from(
        [
            "ls", "cat x", "find .", "git diff", "rm x", "touch made", "; ", " && ", " | ", "\n", " & ", "$(", "`", ")",
            " > made", " >> x", "-delete", "-exec rm {} +", "--output=made", "'", '"', "\\", "#", "{", "}", "eval ",
            "FOO=1 ", "sh -c ", "env ", "xargs ", "\t", "~", "*", "<(", "!", "-o made ",
        ]
    ),
    min_size=1,
    max_size=7,
).map("".join)  # fmt: skip


async def test_MB_T9_commands_that_are_not_read_only_need_approval(tmp_path: Path) -> None:
    """No part of such a command runs, and a read-only one does, as a list and as text; for any text, a command that
    runs without approval changes nothing."""
    async with shell_worker(tmp_path, allow_shell=True, approvals="some") as worker:
        (worker.workspace / "x").write_text("kept")
        for command in ASKED:
            assert (await worker.run(command)).status == "approval", command
        for command in (["cat", "x"], "cat x", "grep -rn kept .", "find . -name 'x'", "sed -n 1,10p x"):
            said = await worker.run(command)
            assert said.status == "ok"
            assert "x" in said.output
        for script in ("", *_examples(SCRIPTS, 25)):
            await worker.run(script)
            assert [(file.name, file.read_text()) for file in worker.workspace.iterdir()] == [
                ("x", "kept")
            ], script


async def test_MN_T5_planning_runs_read_only_commands(tmp_path: Path) -> None:
    """While planning nothing else runs, approved or not."""
    async with shell_worker(tmp_path, allow_shell=True, plan=True) as worker:
        (worker.workspace / "f").write_text("kept\n")
        for line in ("ls -la", "cat f", "grep -rn kept .", "find . -name f", "sed -n 1,10p f"):
            said = await worker.run(line)
            assert (said.status, "exit code 0" in said.output) == ("ok", True), line
        for line in (
            "git status",
            "git log",
            "git diff",
            "git show",
        ):  # there is no repository: git says so itself
            said = await worker.run(line)
            assert said.status == "ok", line
        for line in (
            "rm f", "echo x > f", "echo x >> f", "git commit -m x", "git push", "git checkout -b x", "git tag v",
            "git stash", "pip install x", "ls && rm f", "cat f|tee g", "touch g", "mkdir d", "echo $(rm f)",
            "sed -i s/k/l/ f", "find . -delete", "find . -exec rm {} ;", "", "awk 'BEGIN{system(\"rm f\")}'",
            "env rm f", "ls\nrm f", "find . -ok rm {} ;", "sort -o f f", "sed -n 'w g' f", "git diff --output=g",
            "ls & rm f", "echo `rm f`", "./f", "PATH=. ls",
        ):  # fmt: skip
            said = await worker.run(line)
            assert said.status == "error", line
            assert "refused" in said.output
        assert [(file.name, file.read_text()) for file in worker.workspace.iterdir()] == [("f", "kept\n")]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_a_read_only_command_ignores_the_repositorys_configuration(
    tmp_path: Path,
) -> None:
    """A repository that names programs for everything that git can be made to run: reading it changes no file."""
    async with shell_worker(tmp_path, allow_shell=True, approvals="some", allow_network=True) as worker:
        await anyio.to_thread.run_sync(hostile_repository, worker.workspace)
        before = _picture(worker.workspace)
        said = ""
        for line in ("git status", "git diff", "git log -p", "git show", "git diff --stat", "git blame file"):
            looked = await worker.run(line.split())
            assert looked.status == "ok", line
            said += looked.output
        assert "MARK" in said, "the programs did run, and could do nothing"
        assert _picture(worker.workspace) == before


MARK = "sh -c 'echo MARK >> /workspace/mark; echo MARK; rm -f /workspace/file; echo MARK >&2; cat'"


def hostile_repository(folder: Path) -> None:
    """A repository whose configuration runs ``MARK`` at every occasion."""
    run = partial(subprocess.run, cwd=folder, check=True, capture_output=True)
    run(["git", "init", "-q"])
    (folder / "file").write_text("one\n")
    (folder / ".gitattributes").write_text("* diff=evil filter=evil\n")
    run(["git", "add", "."])
    run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first"])
    (folder / "file").write_text("two\n")
    for name in (
        "core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.clean",
        "filter.evil.smudge", "core.sshCommand", "core.editor", "core.askPass", "gpg.program",
    ):  # fmt: skip
        run(["git", "config", name, MARK])
    for hook in ("post-index-change", "pre-commit", "post-checkout"):
        file = folder / ".git/hooks" / hook
        file.write_text(f"#!/bin/sh\n{MARK}\n")
        file.chmod(0o755)


def _picture(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SECRET = "a-secret-of-the-owner"


async def test_MB_T7_no_path_spelling_shows_a_protected_file(tmp_path: Path) -> None:
    """The operating system protects the file, not an analysis of the text: quotes, globs, scripts, links, in every
    scope."""
    async with shell_worker(tmp_path, scope="system", approvals="none") as worker:
        for name in (".env", "auth.json", "x/id_rsa", ".ssh/config"):
            file = worker.workspace / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(SECRET)
        for script in (
            "cat .env", "cat .e''nv", "cat .en*", "cat .e?v", "cat ././/.env", "cat /workspace/.env",
            "x=.e; cat ${x}nv",
            "ln -s .env l; cat l", "ln .env h; cat h", "cp .env c; cat c", "mv .env m; cat m", "grep -r . .",
            "cat x/id_rsa",
            "cat .ssh/* auth.json", "find . -exec cat {} +", "tar c . | tr -d '\\0'", "cat /proc/*/root/workspace/.env",
            "python3 -c 'print(open(\".env\").read())'", "base64 .env", "cat < .env", f"cat {worker.workspace}/.env",
        ):  # fmt: skip
            said = await worker.run(script)
            assert SECRET not in said.output, script
            assert "YS1zZWNyZXQ" not in said.output
        assert (worker.workspace / ".env").read_text() == SECRET
        assert (await worker.run(["cat", "/etc/shadow"])).output.startswith("exit code 1")
        assert SECRET not in (await worker.run(["cat", ".env"])).output
        for scope in ("block", "workspace"):  # the same workspace shown to a block of a narrower scope
            await write_permissions(worker.running.bus, scope, scope=scope, allow_shell=True)
            theirs = worker.running.home.workspace(scope)
            theirs.mkdir(parents=True)
            (theirs / ".env").write_text(SECRET)
            for script in ("cat .env", "cat .e''nv", "cat .en*"):
                said = await call_tool(
                    worker.running.bus, "execute_command", {"command": script}, block=scope
                )
                assert (said.status, SECRET in said.output) == ("ok", False), (scope, said.output)


async def test_a_folder_outside_of_the_workspace_is_refused(tmp_path: Path) -> None:
    """With what would be allowed, and nothing runs."""
    async with shell_worker(tmp_path) as worker:
        (worker.workspace / "file").write_text("")
        (worker.workspace / "linked").symlink_to("/etc")
        for folder in ("..", "/etc", "~", "linked", "missing", "file", ".ssh/../..", "a\0b"):
            assert (await worker.run("touch /workspace/made", folder=folder)).status == "error", folder
        assert not (worker.workspace / "made").exists()


WORDS = st.lists(
    st.text(max_size=8) | st.sampled_from([";", "$(touch made)", "`touch made`", "> made", "\n", "-x"])
)


async def test_no_argument_is_read_by_a_shell(tmp_path: Path) -> None:
    """Any words reach the program unchanged, or the call is refused; there is no other effect."""
    async with shell_worker(tmp_path) as worker:
        for words in _examples(WORDS, 12):
            await _arrives(worker, words)
        assert list(worker.workspace.iterdir()) == []


async def _arrives(worker: ShellWorker, words: list[str]) -> None:
    said = await worker.run(["python3", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *words])
    if said.status == "ok":
        assert json.loads(said.output.partition("--- stdout\n")[2]) == words
    else:
        assert "\0" in "".join(words) or "valid text" in said.output


def _examples(words: st.SearchStrategy[T], count: int) -> list[T]:
    """Examples that hypothesis finds, for a platform that is made once for all of them."""
    found: list[T] = []

    @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
    @given(words)
    def collect(one: T) -> None:
        found.append(one)

    collect()
    return found
