"""The public face is typed: plugins in strict mypy, and wrong uses that mypy must find."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_snippets_are_strictly_typed():
    """Right uses pass, and every wrong one, marked as such, is an error."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml"]
    done = subprocess.run(
        [*command, *sorted((ROOT / "tests/typing/snippets").glob("*.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
