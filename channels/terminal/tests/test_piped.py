"""The terminal channel through pipes, as a process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, str(Path(__file__).with_name("terminal_program.py"))]


def piped(tmp_path: Path, lines: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the channel with this input."""
    return subprocess.run(
        [*PROGRAM, str(tmp_path)], input=lines, capture_output=True, text=True, timeout=60,
        env={**os.environ, "TERM": "xterm-256color", **environ},
    )  # fmt: skip


def test_each_line_is_a_message(tmp_path: Path) -> None:
    """Standard output contains the answers in order and nothing else."""
    done = piped(tmp_path, "one\n\ntwo\nthree")
    assert done.stdout == "You said: one\nYou said: two\nYou said: three\n"
    assert done.returncode == 0


def test_no_escape_code_is_written(tmp_path: Path) -> None:
    """Neither the channel nor the text of a model or a tool writes one."""
    done = piped(tmp_path, "markdown\nhostile\ntools\n/help\n")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x9b" not in done.stdout and "\u202e" not in done.stdout
    assert "# Heading" in done.stdout and "␛[31mred" in done.stdout


def test_tool_lines_are_distinct_from_the_answer(tmp_path: Path) -> None:
    """The calls of tools are reported on standard error."""
    done = piped(tmp_path, "tools\n")
    assert done.stdout == "I look.\nDone.\n"
    assert "[ok] read_file path=notes/a.md" in done.stderr
    assert "[failed] write_file" in done.stderr


def test_a_withdrawn_answer_is_not_printed(tmp_path: Path) -> None:
    """Text is written when it is final."""
    assert piped(tmp_path, "reset\n").stdout == "The true answer.\n"


@pytest.mark.parametrize(("lines", "status"), [("failing\none\n", 1), ("/nwe\n", 1), ("approval\none\n", 3)])
def test_the_exit_status_reports_the_kind_of_failure(tmp_path: Path, lines: str, status: int) -> None:
    """1 for a failed turn or command, 3 for a turn that waits for a decision."""
    assert piped(tmp_path, lines).returncode == status


def test_a_failed_turn_does_not_stop_the_rest(tmp_path: Path) -> None:
    """The next line is still sent, and text from before the failure is kept."""
    done = piped(tmp_path, "failing\nnext\n")
    assert done.stdout == "Half of an ans\nYou said: next\n"
    assert "The model provider failed to answer." in done.stderr


def test_an_approval_is_never_given_through_a_pipe(tmp_path: Path) -> None:
    """MN-T16: a yes on the next line is not taken for an answer."""
    done = piped(tmp_path, "approval\ny\n")
    assert "Sent." not in done.stdout and "May I send this mail?" in done.stderr
    how = re.search(r"trunkline approvals approve (\S+) \(or deny (\S+)\)", done.stderr)
    assert how is not None and how[1] == how[2] and how[1] in done.stderr.partition(how[0])[0]


@pytest.mark.parametrize("given", [b"\xff\xfe broken\n", b"no end of line", b"", b"win\r\n"])
def test_any_bytes_are_read(tmp_path: Path, given: bytes) -> None:
    """Broken UTF-8, a missing line end, no input at all and Windows line ends are all right."""
    done = subprocess.run([*PROGRAM, str(tmp_path)], input=given, capture_output=True, timeout=60)
    assert done.returncode == 0
    assert (b"You said" in done.stdout) == bool(given)
    assert b"\r" not in done.stdout


def test_a_file_and_dev_null_can_be_read(tmp_path: Path) -> None:
    """Standard input need not be a pipe."""
    (tmp_path / "in").write_text("from a file\n")
    for name, expected in ((tmp_path / "in", b"You said: from a file\n"), (Path("/dev/null"), b"")):
        with name.open("rb") as file:
            done = subprocess.run([*PROGRAM, str(tmp_path)], stdin=file, capture_output=True, timeout=60)
        assert (done.stdout, done.returncode) == (expected, 0)
