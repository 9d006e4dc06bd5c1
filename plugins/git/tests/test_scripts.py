"""What the guard rules about scripts, and about commands that run others."""

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from places import needs_both, place
from scripts import CONFIRMED, FREE, REFUSED
from shells import SCRIPTS, SHELLS, had_git_run, was_read

from trunkline_git.commands import ruled
from trunkline_git.settings import GitSettings

PROTECTED = GitSettings().protected


@pytest.mark.parametrize("script", REFUSED)
def test_MN_T6_a_script_that_pushes_is_refused(script: str) -> None:
    """Whatever runs git in it: a list, a substitution, another shell, a wrapper, a variable."""
    verdict = ruled(script, PROTECTED)
    assert (verdict.ruling, bool(verdict.why)) == ("refused", True)


@pytest.mark.parametrize("script", CONFIRMED)
def test_MN_T6_a_script_that_throws_work_away_is_asked_about(script: str) -> None:
    """As it is of the tool ``git``."""
    assert ruled(script, PROTECTED).ruling == "confirm"


@pytest.mark.parametrize("script", FREE)
def test_an_ordinary_script_passes(script: str) -> None:
    """The guard has no word to say where nothing of git is in danger."""
    assert ruled(script, PROTECTED).ruling == "free"


@pytest.mark.anyio
@needs_both
async def test_MN_T6_no_script_gets_a_push_past_the_guard(tmp_path: Path) -> None:
    """Where programs run and nobody is asked: nothing of it is run, as a script, by ``sh -c``, or in the background."""
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
        assert here.heads() == before


@pytest.mark.anyio
@needs_both
async def test_scripts_with_git_run(tmp_path: Path) -> None:
    """What is free is done, as ever, and so is what is asked about once a person has said so."""
    async with place(tmp_path) as here:
        for script, shown in (
            ("git log --format=%s | sort", "one\ntwo"),
            ("for f in *; do git add \"$f\"; done; git status --short && echo clean", "clean"),
            (COMMITTING, "It's a (new) one"),
            ("echo 'git push -f' > notes; grep -c 'git push' notes", "1"),
            ("sh <<'E'\ngit rev-parse --abbrev-ref HEAD\nE", "main"),
            ("git init -q ../other && git -C ../other config user.name x && git -C ../other config user.name", "x"),
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


def wrapped(words: list[str], around: list[str]) -> str:
    """The words as a script, with each of these around it, the first one nearest."""
    text = shlex.join(words)
    for number, wrapper in enumerate(around):
        text = wrapper.format(text=text, quoted=shlex.quote(text), end=f"END{number}")
    return text


AROUND = st.lists(st.sampled_from(WRAPPERS), max_size=5)
FORBIDDEN = st.sampled_from(
    [
        ["git", "push", "-f"], ["git", "push", "origin", "+main"], ["/usr/bin/git", "push"], ["git", "-C", "x", "push"],
        ["env", "-S", "git push -f"], ["xargs", "git", "push"], ["git", "-c", "alias.x=!git push", "x"],
        ["git-push", "-f"], ["nice", "git", "push"], ["find", ".", "-exec", "git", "push", ";"],
        ["git", "it's unknown"], ["env", "GIT_SSH_COMMAND=./it's", "git", "fetch"],
    ]
)  # fmt: skip
ALLOWED = st.sampled_from(
    [
        ["ls", "-l"], ["git", "status"], ["git", "add", "-A"], ["git", "commit", "-m", 'it\'s "all" of $it\n`x`'],
        ["make", "all"], ["grep", "-rn", "it's", "."], ["env", "git", "log", "-3"], ["git", "diff", "--stat"],
        ["find", ".", "-name", "*.py", "-exec", "git", "add", "{}", "+"],
    ]
)  # fmt: skip
SOME = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@SOME
@given(FORBIDDEN, AROUND)
def test_MN_T6_nothing_around_it_makes_a_push_pass(words: list[str], around: list[str]) -> None:
    """However deep it is."""
    assert ruled(wrapped(words, around), PROTECTED).ruling == "refused"


@SOME
@given(ALLOWED, AROUND)
def test_nothing_around_it_makes_what_is_free_refused(words: list[str], around: list[str]) -> None:
    """As long as a shell can be told what is meant."""
    script = wrapped(words, around)
    assume(len(script) < 20_000)
    assert ruled(script, PROTECTED).ruling != "refused"


@SOME
@given(st.text(max_size=40) | SCRIPTS)
def test_every_text_gets_a_ruling(script: str) -> None:
    """None breaks the reader, and one that no shell could read does not either."""
    assert ruled(f"git status; {script}", PROTECTED).ruling in ("free", "confirm", "refused")


@pytest.mark.skipif(not SHELLS, reason="no shell to compare with (apt install dash bash busybox)")
@settings(SOME, max_examples=60)
@example("cat <<E'O'F\nEOF\ngit x\nE'O'F\n")
@example("cat <<E\n\\\nE\ngit x\nE\n")
@example("echo `echo \\`git x\\``")
@example('echo "${x:-\'}"; git x #\'}"')
@example("echo $'\\''; git x #'")
@example("echo $(cat <<E\na\nE)\ngit x\nE\n)\n")
@example('case "$@" in a) echo;; *) git x;; esac')
@example("echo a &>f git x")
@example("echo git {a,<(echo b)}")
@example("((git x) )")
@example("x[<<E]=1\ngit x\nE]=1\n")
@given(SCRIPTS)
def test_what_a_shell_runs_was_read(script: str) -> None:
    """No command that dash, bash or busybox gives to git is passed over: it was read, or the reader is in doubt."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # what a script leaves running writes on
        for shell in SHELLS:
            for ran in had_git_run(shell, script, Path(folder)):
                assert was_read(ran, script), (shell, ran)
