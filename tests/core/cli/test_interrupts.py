"""Ctrl-C at any moment of a command's start, work and stop, once or more: it ends, without a traceback."""

import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = (
    "from trunkline.cli.entry import main, use_default_sigint; use_default_sigint(); "
    "print('begun', flush=True); main()"
)
"""The program, which says when Python's own start is over: nobody can have a say before that."""

TIMEOUT = 60.0


def heeding() -> None:
    """Have the program heed Ctrl-C: a shell starts its background jobs, `.ci/run` this suite, with it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def pressed(environ: dict[str, str], moments: list[float], *arguments: str) -> tuple[int, str]:
    """Run the program at a terminal and press Ctrl-C after so many seconds. Return its status and its output."""
    leader, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], env={**environ, "TERM": "xterm"}, close_fds=True,
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, preexec_fn=heeding,
    )  # fmt: skip
    os.close(terminal)
    shown, begun, deadline = "", 0.0, time.monotonic() + TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        if select.select([leader], [], [], 0.01)[0]:
            try:
                shown += os.read(leader, 65536).decode(errors="replace")
            except OSError:
                break
        begun = begun or ("begun" in shown and time.monotonic()) or 0.0
        if begun and moments and time.monotonic() - begun >= moments[0]:
            moments.pop(0)
            process.send_signal(signal.SIGINT)
    status = process.wait(timeout=TIMEOUT)
    os.close(leader)
    return status, shown


def moments(seed: int, presses: int) -> list[float]:
    """When to press: the first within two seconds, the others soon after."""
    chance = random.Random(seed)
    found = [chance.uniform(0.0, 2.0)]
    while len(found) < presses:
        found.append(found[-1] + chance.choice((0.0, 0.02, 0.1, 0.3)))
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("presses", [2, 3])
@pytest.mark.parametrize(
    "command", [("chat",), ("up",), ("say", "count 1 2 3"), ("run", "monitor")], ids=lambda it: it[0]
)
def test_ctrl_c_shows_no_traceback_whenever_it_is_pressed(
    environ: dict[str, str], home: Path, command: tuple[str, ...], presses: int, seed: int
) -> None:
    """Ctrl-C is pressed two or three times during start, work or stop. Its child processes end with it, and the next
    start works."""
    environ = {**environ, "TRUNKLINE_GATEWAY__PORT": "0"}
    status, shown = pressed(environ, moments(seed * 10 + presses, presses), *command)
    assert status in (0, 1, 128 + signal.SIGINT, -signal.SIGINT), shown
    for word in (
        "Traceback",
        "Exception ignored",
        "never awaited",
        "never retrieved",
        "Something went wrong",
    ):
        assert word not in shown, shown
    if seed == 0:
        done = subprocess.run(
            [sys.executable, "-m", "trunkline.cli.main", "say", "hello"],
            env=environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
