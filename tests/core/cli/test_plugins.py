"""``trunkline plugins``: what is there, and a package to begin with."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_plugins_are_listed_with_why_one_is_not_loaded(trunkline: Run, tmp_path: Path) -> None:
    """Name, version, distribution, hooks and status; the reason for what is left out."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    env = {"TRUNKLINE_RUNTIME__TOOL_SOURCES": str(folder)}
    listed = {
        one["name"]: one
        for one in json.loads(trunkline("plugins", "list", "--json", env=env).stdout)["plugins"]
    }
    assert listed["offline"]["status"] == "loaded" and "trunkline_models" in listed["offline"]["hooks"]
    assert listed["offline"]["owner"] == "trunkline-offline" and listed["offline"]["version"]
    assert listed["broken"]["status"] == "failed" and "nothing_of_that_name" in listed["broken"]["reason"]
    table = trunkline("plugins", "list", env=env).stdout
    assert "PLUGIN" in table and "broken is failed:" in table


def test_a_new_tool_plugin_passes_its_own_tests(
    trunkline: Run, tmp_path: Path, environ: dict[str, str]
) -> None:
    """The package works as generated."""
    done = trunkline("plugins", "new", "tool", "rain-gauge", "--to", str(tmp_path))
    assert done.returncode == 0, done.stderr
    root = tmp_path / "trunkline-rain-gauge"
    assert {"pyproject.toml", "README.md"} <= {path.name for path in root.iterdir()}
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(root)],
        env={**environ, "PYTHONPATH": os.pathsep.join([str(root / "src")])}, cwd=root,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout


def test_a_new_plugin_never_overwrites(trunkline: Run, tmp_path: Path) -> None:
    """What is there stays."""
    trunkline("plugins", "new", "tool", "rain", "--to", str(tmp_path))
    again = trunkline("plugins", "new", "tool", "rain", "--to", str(tmp_path))
    assert again.returncode == 1 and "is there already" in again.stderr
