"""The command line as a person uses it: ``trunkline ARGUMENTS`` in a process of its own, on a home of its own."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from trunkline.testing.platform import clean_environ

Ran = subprocess.CompletedProcess[str]
"""What came of it: ``returncode``, ``stdout``, ``stderr``."""

Run = Callable[..., Ran]


def run_trunkline(
    home: Path, *arguments: object, stdin: str = "", timeout: float = 110.0, **environ: str
) -> Ran:
    """Run ``trunkline ARGUMENTS`` to its end, beside ``home``, with ``environ`` added to its environment. Bytes that
    are no UTF-8 are lone surrogates in ``stdin`` and in what comes of it.

    Raises:
        subprocess.TimeoutExpired: it did not end within ``timeout`` seconds.
    """
    return subprocess.run(
        [sys.executable, "-m", "trunkline.cli.main", *map(str, arguments)],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home), "COLUMNS": "100", **environ},
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=timeout,
        check=False,
        cwd=home.parent,
    )


def at_terminal(home: Path, *arguments: object) -> str:
    """Return the output of ``trunkline ARGUMENTS`` at a separate terminal: both streams, as the terminal receives
    them."""
    keys, screen = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "trunkline.cli.main", *map(str, arguments)],
        env={**clean_environ(), "TRUNKLINE_HOME": str(home), "TERM": "xterm"},
        stdin=screen, stdout=screen, stderr=screen, close_fds=True, cwd=home.parent,
    ):  # fmt: skip
        os.close(screen)
        shown = b""
        while piece := _read(keys):
            shown += piece
    os.close(keys)
    return shown.decode()


def _read(keys: int) -> bytes:
    try:
        return os.read(keys, 65_536)
    except OSError:  # the other end was closed
        return b""
