"""Commands whose lines are long, at a terminal of 80 columns."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.support.commands import run_trunkline
from tests.support.tmux import MISSING, Tmux

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def shown(environ: dict[str, str], *words: str) -> str:
    """Return the output of a command there."""
    assigned = [f"{name}={value}" for name, value in environ.items()]
    command = shlex.join(["env", "-i", *assigned, sys.executable, "-m", "trunkline.cli.main", *words])
    with Tmux(command, columns=80, rows=60) as terminal:
        terminal.wait_shows("left with 0")
        return terminal.screen()


def test_traces_and_the_audit_log_break_between_words(environ: dict[str, str], home: Path) -> None:
    """The log has a header, which a pipe has not; a trace shows the channel where its span has a template."""
    said = "/tool memory_search query='a long question about the beans in the garden'"
    assert run_trunkline(home, "say", said).stdout
    audit = shown(environ, "audit")
    assert audit.startswith("TIME ") and "\n                           " in audit, audit
    assert not run_trunkline(home, "audit").stdout.startswith("TIME")
    trace = shown(environ, "trace", "last")
    assert "{channel}" not in trace and "trunkline.cmd.gateway." in trace


def test_the_checks_of_doctor_break_between_words(environ: dict[str, str], home: Path) -> None:
    """A wrapped result of a check is indented to its start, and so is its hint."""
    lines = shown(environ, "doctor").splitlines()
    [at] = [number for number, line in enumerate(lines) if " web.search " in line]
    assert lines[at + 1].startswith(" " * 30) and lines[at + 1][30] != " ", lines


def test_a_long_title_wraps_in_the_list(environ: dict[str, str], home: Path) -> None:
    """No word of it is cut."""
    said = "How do the runner beans climb around the wooden frame?"
    assert run_trunkline(home, "say", said).stdout
    listed = shown(environ, "conversations")
    assert said in " ".join(listed.split()), listed
