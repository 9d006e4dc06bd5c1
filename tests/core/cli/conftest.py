"""Shared by the tests of the command line: the real program, on a separate home."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from trunkline.testing.platform import Platform, clean_environ, platform

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Cli = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    return {
        **clean_environ(),
        "TRUNKLINE_HOME": str(home),
        "COLUMNS": "100",
        "TRUNKLINE_BUS__CONNECT_TIMEOUT": "0.5",
    }


@pytest.fixture
def trunkline(environ: dict[str, str]) -> Run:
    """Run ``trunkline ARGUMENTS`` to its end; ``env`` adds variables, ``stdin`` is its input."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "trunkline.cli.main", *arguments],
            env={**environ, **(env or {})}, input=stdin, capture_output=True, text=True, timeout=60, check=False,
            cwd=Path(environ["TRUNKLINE_HOME"]).parent,
        )  # fmt: skip

    return run


@pytest.fixture
async def running(home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    config = getattr(request, "param", {})
    async with platform(home, workers=("memory", "tools", "gateway"), config=config) as found:
        yield found


@pytest.fixture
def cli(trunkline: Run) -> Cli:
    """Runs the program beside the platform; its standard output, or its standard error when it fails."""

    async def run(*arguments: str, status: int = 0) -> str:
        done = await anyio.to_thread.run_sync(lambda: trunkline(*arguments))
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    return run
