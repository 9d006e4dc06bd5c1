"""The command line as a person uses it: ``trunkline ARGUMENTS`` in a process of its own, on a home of its own."""

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
