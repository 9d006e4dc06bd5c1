"""MB-T9, MN-T5: which programs only read, by their argument vector."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline._util.text import split_plain_command
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.policy.read_only_programs import PLAIN, is_read_only_call, is_read_only_program

READS = [
    "ls -la", "ls", "cat f", "grep -rn x .", "grep -A 3 x f", "git status", "git log --oneline -5",
    "git diff", "git show HEAD", "git --no-pager diff --stat", "find . -name '*.py'",
    "find . -maxdepth 2 -type f -mtime -1", "sed -n 1,10p f", "sed -n '$p' f", "head -n 5 f", "head -5 f",
    "git rev-parse HEAD", "git describe --tags", "git blame f", "git ls-files -m", "git ls-tree -r HEAD",
    "git cat-file -p HEAD", "git shortlog -sn", "wc -l f", "sort -n f", "cat -- -rf", "echo hello",
]  # fmt: skip

DOES_NOT = [
    "", "rm f", "rm -rf /", "touch f", "mkdir d", "pip install x", "tee f", "cp a b", "mv a b", "xargs rm",
    "sh -c ls", "bash", "ls; rm -rf x", "python -c 1", 'awk \'BEGIN{system("x")}\'', "env rm f", "env",
    "sort -o f f", "sort --output=f f", "sort --outp=f f", "sort --compress-program=x f", "sort -no f",
    "sed -i s/a/b/ f", "sed -n 'w f'", "sed -n 1,10p -i f", "sed s/a/b/e f", "sed -n '1e touch x' f",
    "find . -delete", "find . -exec rm {} ;", "find . -execdir rm {} ;", "find . -ok rm {} ;",
    "find . -fprint f", "find . -fls f", "git commit -m x", "git push", "git checkout -b x", "git tag v",
    "git stash", "git diff --output=f", "git diff --outp=f", "git log --output f",
    "git -c core.pager=x log", "git -C /x status", "git branch x", "git diff --ext-diff",
    "git show --textconv", "git", "./ls", "/bin/rm", "/tmp/ls", "uniq a b", "tail -f f",
    "grep --devices=x f", "which -a --x", "diff --to-file=x f", "date -s x", "file -C", "tree -o f",
    "ls\x00",
]  # fmt: skip


@pytest.mark.parametrize("line", READS)
def test_read_only_commands_are_recognized(line: str) -> None:
    """These need no approval, and planning permits them."""
    assert is_read_only_program(shlex.split(line))


@pytest.mark.parametrize("line", DOES_NOT)
def test_other_commands_are_not_read_only(line: str) -> None:
    """These write, run another program, or are not known."""
    assert not is_read_only_program(shlex.split(line))


WORDS = st.sampled_from(
    [
        *(
            "a",
            "b",
            "d",
            "f",
            "-",
            "--",
            ".",
            "*",
            ";",
            "{}",
            "1,2p",
            "-1",
            "-k1",
            "-type",
            "-name",
            "-print",
            "--lines=2",
        ),
        *("-n", "-r", "-l", "-o", "-u", "-i", "-c", "-delete", "-exec", "-fprint", "--output=b", "--outp"),
    ]
)


@examples(60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=st.sampled_from([*PLAIN, "find", "sed"]), words=st.lists(WORDS, max_size=5))
def test_recognized_read_only_commands_change_nothing(tmp_path: Path, program: str, words: list[str]) -> None:
    """The commands really run in a folder: every command classified as read-only leaves all files unchanged."""
    if not is_read_only_program([program, *words]) or shutil.which(program) is None:
        return
    (tmp_path / "d").mkdir(exist_ok=True)
    for name in ("a", "b", "d/c"):
        (tmp_path / name).write_text("one\ntwo\n")
    subprocess.run([program, *words], cwd=tmp_path, input=b"", capture_output=True, timeout=60, check=False)
    found = {
        str(path.relative_to(tmp_path)): path.is_dir() or path.read_text() for path in tmp_path.rglob("*")
    }
    assert found == {"a": "one\ntwo\n", "b": "one\ntwo\n", "d": True, "d/c": "one\ntwo\n"}


SHELL = ToolSpec(name="t", description="", parameters={}, effect="exec", argv="command")
LINES = st.text(st.sampled_from("ab -/.=:,+@%'\"\\$`;&|<>(){}[]*?!~~#^a1\n\r\t\0\x01üé"), max_size=12)


@examples(150, deadline=None)
@given(
    line=st.one_of(LINES, st.lists(st.sampled_from(["'a b'", '"c;d"', "e", " ", "$x", "''"])).map("".join))
)
def test_MB_T9_a_plain_line_is_read_as_a_shell_reads_it(line: str) -> None:
    """Text classified as plain words is the same words to ``sh``."""
    words = split_plain_command(line)
    if not words or "=" in words[0]:
        return
    for shell in ("sh", "bash"):
        if shutil.which(shell) is None:
            continue
        script = f"set -- {line}\nprintf '<%s>' \"$@\""
        said = subprocess.run([shell, "-c", script], capture_output=True, timeout=60, check=True, cwd="/")
        assert said.stdout.decode() == "".join(f"<{word}>" for word in words)


@pytest.mark.parametrize("line", [line for line in READS if "$" not in line and "*" not in line])
def test_MN_T5_a_shell_line_that_only_reads_is_read_only(line: str) -> None:
    """A line for a shell is classified by its words."""
    assert is_read_only_call(SHELL, {"command": line})


@pytest.mark.parametrize(
    "line",
    [
        *DOES_NOT, "ls; rm -rf x", "echo $(rm x)", "echo `rm x`", "ls && rm x", "ls & rm x", "cat a | tee b",
        "echo x > f", "echo x >> f", "cat < f > g", "find . -delete", "git diff --output=f", "ls\nrm x", "ls\rrm x",
        "A=b ls", "PATH=. ls", "cat ~/x", "ls *", "cat .e?v", "ls {a,b}", "e\\cho x", "ls \\\nrm", "! ls", "(ls)",
        "ls #x", "\"ls\" $x", "'ls", "ls \u2028 rm", "ls\x0brm x", "cat $'a'", "ls ${x}", "ls !x",
    ],
)  # fmt: skip
def test_MB_T9_any_other_text_is_not(line: str) -> None:
    """Text with shell syntax, or with a command not known to be read-only, needs approval."""
    assert not is_read_only_call(SHELL, {"command": line})


@pytest.mark.parametrize("given", [None, 1, {}, [], [1], ["ls", 1], [["ls"]], "", "   "])
def test_a_call_without_argv_is_not_read_only(given: object) -> None:
    """This holds for any other arguments of the call."""
    assert not is_read_only_call(SHELL, {"command": given})
    assert not is_read_only_call(SHELL, {})
