"""Tab completion, as the shells themselves do it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trunkline.testing.platform import clean_environ

ASK = """
eval "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_trunkline_completion trunkline
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two blocks and some files."""
    for path in (
        "blocks/main/memory.md",
        "blocks/garden/notes/a b.md",
        "blocks/garden/notes/c.md",
        "AGENT.md",
        "chunks/2026-05-04/chunk-2026-05-04-1f3a9c2b.json",
        "blocks/garden/chunks/2026-05-05/chunk-2026-05-05-77aa01c3.json",
    ):
        file = tmp_path / "home/memory" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    (tmp_path / "home/memory/away").symlink_to("/etc")
    return tmp_path / "home"


def run(home: Path, *command: str) -> str:
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(home)}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_bash_completes_commands_blocks_and_paths(home: Path) -> None:
    """Commands and verbs, options, blocks, and paths of memory; a folder that is alone is opened; nothing leads out."""
    cases = {
        ("memory", "ex"): ["export"],
        ("completion", "z"): ["zsh"],
        ("memory", "export", "--rec"): ["--recipient", "--recipients-file"],
        ("blocks", "show", ""): ["garden", "main"],
        ("chat", "--block", "g"): ["garden"],
        ("permissions", "g"): ["garden"],
        ("permissions", "ru"): ["rules"],
        ("permissions", "garden", "--sc"): ["--scope"],
        ("memory", "show", "A"): ["AGENT.md"],
        ("memory", "show", "blocks/garden/n"): ["blocks/garden/notes/a b.md", "blocks/garden/notes/c.md"],
        ("memory", "forget", ""): ["chunk-2026-05-05-77aa01c3", "chunk-2026-05-04-1f3a9c2b"],
        ("memory", "chunks", "show", "chunk-2026-05-04"): ["chunk-2026-05-04-1f3a9c2b"],
        ("memory", "link", "x", "supports", "chunk-2026-05-05-77"): ["chunk-2026-05-05-77aa01c3"],
        ("memory", "purge", "chunk-2026-05-04-1"): ["chunk-2026-05-04-1f3a9c2b"],
        ("memory", "purge", "A"): ["AGENT.md"],
        ("memory", "history", "blocks/"): ["blocks/garden/", "blocks/main/"],
        ("memory", "show", "../"): [""],
        ("memory", "show", "away/pass"): [""],
        ("blocks", "create", ""): [""],
    }
    script = run(home, "trunkline", "completion", "bash")
    for words, offered in cases.items():
        found = run(home, "bash", "-c", ASK, "bash", script, "trunkline", *words)
        assert found.removesuffix("\n").split("\n") == offered, words


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts_work_in_other_shells(shell: str, home: Path, tmp_path: Path) -> None:
    """The script is of that shell's language."""
    script = run(home, sys.executable, "-m", "trunkline.cli.main", "completion", shell)
    assert "_TRUNKLINE_COMPLETE" in script and f"{shell}_complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tmp_path / "script").write_text(script)
    run(home, shell, "-n", str(tmp_path / "script"))
