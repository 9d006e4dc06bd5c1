"""The commands of people who operate a platform, on a home of their own with nothing running."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.tmux import MISSING, Tmux

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_unknown_dead_letters_are_an_error(trunkline: Run) -> None:
    """An empty list is a sentence, JSON is an empty list, an unknown id an error, no id at all wrong usage."""
    assert trunkline("dead-letters", "list").stdout == "There are no dead letters.\n"
    assert json.loads(trunkline("dead-letters", "list", "--json").stdout) == []
    none = trunkline("dead-letters", "show", "7")
    assert none.returncode == 1 and "There is no dead letter 7." in none.stderr
    assert trunkline("dead-letters", "retry").returncode == 2
    assert trunkline("dead-letters", "retry", "7", "--all").returncode == 2
    assert json.loads(trunkline("dead-letters", "retry", "--all", "--json").stdout) == []
    asked = trunkline("dead-letters", "clear", "--all", "--json", stdin="y\n")
    assert asked.returncode == 1 and asked.stdout == "" and "Give --yes" in asked.stderr
    assert json.loads(trunkline("dead-letters", "clear", "--all", "--yes", "--json").stdout) == {
        "cleared": []
    }


def test_a_home_created_by_any_command_is_private(trunkline: Run) -> None:
    """The first command makes the home, and doctor finds nothing in it that others can look into."""
    assert trunkline("say", "hello").returncode == 0
    checks = json.loads(trunkline("doctor", "--json").stdout)["checks"]
    assert {one["status"] for one in checks if one["id"] == "home.permissions"} == {"ok"}, checks


def test_partitions(trunkline: Run) -> None:
    """A sentence for people, an object for programs; with nothing running the number may be changed."""
    assert trunkline("partitions").stdout == "The inbox has 8 partitions.\n"
    assert json.loads(trunkline("partitions", "--json").stdout) == {"partitions": 8}
    changed = json.loads(trunkline("partitions", "16", "--json").stdout)
    assert changed == {"partitions": 16, "moved": 0}
    assert json.loads(trunkline("partitions", "--json").stdout) == {"partitions": 16}
    assert trunkline("partitions", "0").returncode == 2


def test_top_once(trunkline: Run) -> None:
    """A table for people, JSON for programs; a view that stays needs something that runs."""
    shown = trunkline("top", "--once")
    assert shown.returncode == 0, shown.stderr
    assert "dead letters 0" in shown.stdout and " none" in shown.stdout and "JOURNAL" in shown.stdout
    seen = json.loads(trunkline("top", "--once", "--json").stdout)
    assert len(seen["partitions"]) == 8 and seen["workers"] == [] and seen["lately"]["failed"] == 0
    stays = trunkline("top", "--json")
    assert stays.returncode == 1 and "Nothing runs on" in stays.stderr and "--once" in stays.stderr


def test_top_at_a_terminal(environ: dict[str, str]) -> None:
    """The live view shows the workers, and Ctrl-C leaves it."""
    if MISSING:
        pytest.skip(MISSING)
    program = f"{shlex.quote(sys.executable)} -m trunkline.cli.main"
    up = subprocess.Popen(
        [sys.executable, "-m", "trunkline.cli.main", "up", "--port", "0"],
        env={**environ, "TRUNKLINE_MONITOR__ENGINE_PORT": "0"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert up.stdout is not None and b"ready at" in up.stdout.readline()
        settings = shlex.join(f"{name}={value}" for name, value in environ.items())
        with Tmux(f"env -i {settings} {program} top", columns=140, rows=40) as terminal:
            terminal.wait_until(lambda: "gateway" in terminal.screen() and "STREAMS" in terminal.screen())
            assert str(up.pid) in terminal.screen()
            terminal.keys("C-c")
            terminal.wait_until(lambda: "STREAMS" not in terminal.screen())
    finally:
        up.kill()
        up.wait()
