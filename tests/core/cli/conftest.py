"""What the tests of the command line share: the real program, on a home of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trunkline.testing.platform import clean_environ

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    return {**clean_environ(), "TRUNKLINE_HOME": str(home), "COLUMNS": "100", "TRUNKLINE_BUS__WAIT": "0.5"}


@pytest.fixture
def trunkline(environ: dict[str, str]) -> Run:
    """Runs ``trunkline ARGUMENTS`` to its end; ``env`` adds variables, ``stdin`` is what it reads."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "trunkline.cli.main", *arguments],
            env={**environ, **(env or {})}, input=stdin, capture_output=True, text=True, timeout=60, check=False,
            cwd=Path(environ["TRUNKLINE_HOME"]).parent,
        )  # fmt: skip

    return run
