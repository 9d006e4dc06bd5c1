"""The rulings of the guard on scripts, and actions of scripts that the guard cannot detect."""

import re
import shlex
import time
from pathlib import Path

import pytest
from git_workspaces import git, needs_both, place
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from script_cases import CONFIRMED, FREE, HIDDEN, REFUSED

from tests.support.examples import examples
from trunkline_git.script import MAX_CHARACTERS, judge_command
from trunkline_git.settings import GitSettings

PROTECTED = GitSettings().protected_branches


@pytest.mark.parametrize("script", REFUSED)
def test_MN_T6_a_push_in_plain_sight_is_refused(script: str) -> None:
    """With a sentence that names the tool to use."""
    verdict = judge_command(script, PROTECTED)
    assert (verdict.ruling, "the tool git" in verdict.why) == ("refused", True)


@pytest.mark.parametrize("script", CONFIRMED)
def test_MN_T6_a_script_that_discards_work_needs_approval(script: str) -> None:
    """The rule is that of the ``git`` tool."""
    assert judge_command(script, PROTECTED).ruling == "confirm"


@pytest.mark.parametrize("script", FREE)
def test_an_ordinary_script_passes(script: str) -> None:
    """The guard has no word to say where nothing of git is in danger."""
    assert judge_command(script, PROTECTED).ruling == "free"


RUNNING = """
for script in /workspace/scripts/*; do timeout -k 1 2 bash "$script" </dev/null; done >/tmp/told 2>&1
for script in /workspace/scripts/*; do timeout -k 1 2 sh "$script" </dev/null; done >>/tmp/told 2>&1
echo "arrived: $(grep -c 'unpack failed' /tmp/told)"
"""
"""Runs each script by two shells, and tells how many pushes came as far as the remote."""


@pytest.mark.anyio
@needs_both
async def test_MN_T6_no_script_rewrites_pushed_history(tmp_path: Path) -> None:
    """Programs run without approval here: a push that the guard detects is not run, as a script, by ``sh -c``, or in
    the background, and no script that runs changes the remote."""
    async with place(tmp_path) as here:
        here.rewrite()
        before = here.heads()
        for number, script in enumerate(REFUSED):
            name = ("execute_command", "start_background_task")[number % 2]
            for command in (script, ["sh", "-c", script])[: 1 + (number % 5 == 0)]:
                said = await here.call(name, command=command)
                assert (said.status, "git was not run" in said.output) == ("error", True), command
        for script in CONFIRMED:
            assert (await here.call("execute_command", command=script)).status == "approval", script
        git(here.repo, "config", "push.default", "current")
        folder = here.workspace / "scripts"
        folder.mkdir()
        for number, script in enumerate([*REFUSED, *HIDDEN, *map(wrapped, AROUND_A_PUSH)]):
            (folder / f"{number:03}").write_text(script)
        said = await here.call("execute_command", command=RUNNING)
        arrived = re.search("arrived: ([0-9]+)", said.output)
        assert arrived and int(arrived[1]) > 100, said.output
        assert here.heads() == before


@pytest.mark.anyio
@needs_both
async def test_scripts_with_git_run(tmp_path: Path) -> None:
    """A harmless command runs as always, and one that needs approval runs once a person has approved it."""
    async with place(tmp_path) as here:
        for script, shown in (
            ("git log --format=%s | sort", "one\ntwo"),
            ("for f in *; do git add \"$f\"; done; git status --short && echo clean", "clean"),
            (COMMITTING, "It's a (new) one"),
            ("echo 'git push -f' > notes; grep -c 'git push' notes", "1"),
            ("sh <<'E'\ngit rev-parse --abbrev-ref HEAD\nE", "main"),
            ("git init -q ../other && git -C ../other config user.name x && git -C ../other config user.name", "x"),
            ("x=git; $x rev-parse --abbrev-ref HEAD; echo git status | sh", "main"),
            ("git -c alias.last='log -1 --format=%s' last; git -c core.pager=cat log -1 --format=%s", "new"),
        ):  # fmt: skip
            said = await here.call("execute_command", command=script)
            assert (said.status, shown in said.output) == ("ok", True), (script, said.output)


COMMITTING = """git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m "$(cat <<'E'
It's a (new) one, and no git push -f
E
)" && git log -1 --format=%s"""

WRAPPERS = [
    "{text}", "cd /tmp; {text}", "true && {text}", "( {text}\n)", "{{ {text}\n}} | cat", "! {text}", "{text} &",
    "if true\nthen {text}\nfi", "for i in 1 2\ndo {text}\ndone", "for i do {text}\ndone",
    "while true\ndo {text}\nbreak\ndone",
    "case a in a) {text}\n;; esac", "f() {{ {text}\n}}\nf", "echo $( {text}\n)", 'x="$( {text}\n)"', "cat <( {text}\n)",
    "sh -c {quoted}", "bash -euo pipefail -c {quoted}", "env X=1 sh -c {quoted} name",
    "timeout -s KILL 5 dash -c {quoted}",
    "nohup nice -n 5 sh -c {quoted}", "stdbuf -oL busybox sh -c {quoted}", "sudo -u me sh -c {quoted}", "eval {quoted}",
    "find . -maxdepth 0 -exec sh -c {quoted} \\;", "echo a | xargs -n1 sh -c {quoted}", "flock lock -c {quoted}",
    "su -c {quoted}", "script -qc {quoted} /dev/null", "watch -n 5 {quoted}", "trap {quoted} EXIT",
    "sh <<'{end}'\n{text}\n{end}\n", "bash <<< {quoted}", "cat <<{end}\n$( {text}\n)\n{end}\n", "command eval {quoted}",
]  # fmt: skip
AROUND_A_PUSH = [[one, WRAPPERS[-at]] for at, one in enumerate(WRAPPERS, 1)]


def wrapped(around: list[str], words: tuple[str, ...] = ("git", "push", "-f", "../remote", "main")) -> str:
    """The words as a script, with each of these around it, the first one nearest."""
    text = shlex.join(words)
    for number, wrapper in enumerate(around):
        text = wrapper.format(text=text, quoted=shlex.quote(text), end=f"END{number}")
    return text


@pytest.mark.parametrize("piece", ["<<E ", "'", "$(", "\\\n", "git status;", "sh -c ", "env 1 "])
def test_scripts_are_classified_quickly(piece: str) -> None:
    """Any script of a model is classified quickly, because the tools worker reads it before it runs."""
    began = time.monotonic()
    for length in (MAX_CHARACTERS - len(piece), 10 * MAX_CHARACTERS):
        judge_command((piece * length)[:length], PROTECTED)
    assert time.monotonic() - began < 5.0


AROUND = st.lists(st.sampled_from(WRAPPERS), max_size=5)
ALLOWED = st.sampled_from(
    [
        ("ls", "-l"), ("git", "status"), ("git", "add", "-A"), ("git", "commit", "-m", 'it\'s "all" of $it\n`x`'),
        ("make", "all"), ("grep", "-rn", "it's", "."), ("env", "git", "log", "-3"), ("git", "diff", "--stat"),
        ("find", ".", "-name", "*.py", "-exec", "git", "add", "{}", "+"),
    ]
)  # fmt: skip
SOME = examples(100, deadline=None, suppress_health_check=list(HealthCheck))


@SOME
@given(ALLOWED, AROUND)
def test_shell_syntax_around_a_free_command_does_not_refuse_it(
    words: tuple[str, ...], around: list[str]
) -> None:
    """This holds at any depth."""
    script = wrapped(around, words)
    assume(len(script) < 20_000)
    assert judge_command(script, PROTECTED).ruling != "refused"


@SOME
@given(
    st.lists(
        st.text(max_size=20) | st.sampled_from([*REFUSED, *HIDDEN, *FREE, "<<E\n", "'", '"', "$(", ";", "\n"])
    )
)
def test_every_text_is_classified(pieces: list[str]) -> None:
    """No text breaks the reader, not even one that no shell could read."""
    assert judge_command("".join(pieces), PROTECTED).ruling in ("free", "confirm", "refused")
