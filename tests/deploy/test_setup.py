"""``scripts/setup`` in a clean clone, with uv and without. The lock is cut to what building needs."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .installation import ROOT

BUILDS = ("editables", "hatchling", "packaging", "pathspec", "pluggy", "trove-classifiers")
PYTHON = Path(sys.executable).resolve()


def cut(lock: str, names: tuple[str, ...]) -> str:
    """The lines of a lock about some packages, with their hashes."""
    entries = re.findall(r"^\S+==(?:.*\\\n)*.*\n", lock, re.MULTILINE)
    return "".join(entry for entry in entries if entry.split("==")[0] in names)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of uv and of what building needs, checked against their hashes."""
    folder = tmp_path_factory.mktemp("wheels")
    (folder / "lock").write_text(
        cut((ROOT / "requirements.txt").read_text(), BUILDS) + (ROOT / "scripts/uv.txt").read_text()
    )
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    done = subprocess.run([*argv, "-r", folder / "lock", "-d", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no package index: {done.stderr.strip()[-200:]}")
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A clone whose locks name the tools of building only."""
    folder = tmp_path / "a clone"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/", "benchmarks/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for lock in (folder / "requirements.txt", folder / "deploy/requirements.txt"):
        lock.write_text(cut(lock.read_text(), BUILDS))
    yield folder
    shutil.rmtree(folder)


def set_up(clone: Path, wheels: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run ``scripts/setup`` as a new user on a machine with Python only: no compiler, no uv, no index but a folder."""
    environ = {
        "HOME": str(clone.parent), "PATH": "/usr/bin:/bin", "PYTHON": str(PYTHON), "CC": "false",
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels),
    }  # fmt: skip
    return subprocess.run(
        ["scripts/setup", *arguments], cwd=clone, env=environ, capture_output=True, text=True, timeout=280
    )


def installer(clone: Path, name: str) -> str:
    """Return the installer of a package there."""
    (found,) = clone.glob(f".venv/lib/python*/site-packages/{name}-*.dist-info/INSTALLER")
    return found.read_text().strip()


def test_the_pinned_uv_installs_a_clean_clone_from_pips_index(clone: Path, wheels: Path) -> None:
    """pip fetches uv, uv installs the rest from pip's configured folder, and each step is shown. A second run does
    nothing. A setup for the tests also serves for running."""
    done = set_up(clone, wheels)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines() if line[0] != " "] == [
        "Making", "Fetching", "Installing", "Linking",
    ]  # fmt: skip
    assert {installer(clone, name) for name in ("hatchling", "trunkline", "trunkline_terminal")} == {"uv"}
    seen = subprocess.run(
        [clone / ".venv/bin/python", "-c", "import trunkline; print(trunkline.__file__)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(seen.stdout.strip()) == clone / "core/trunkline/__init__.py"
    again = set_up(clone, wheels)
    assert (again.returncode, again.stderr) == (0, "")
    for_tests = set_up(clone, wheels, "test")
    assert "Linking" in for_tests.stderr and "Fetching" not in for_tests.stderr
    (clone / ".venv/.installed-run").unlink()
    assert set_up(clone, wheels).stderr == ""


def test_without_uv_pip_installs_everything(clone: Path, wheels: Path) -> None:
    """A uv with another hash is not taken, and no source of it is built. pip installs then, and shows how far it is."""
    pin = clone / "scripts/uv.txt"
    pin.write_text(re.sub(r"sha256:\w+", f"sha256:{'0' * 64}", pin.read_text()))
    done = set_up(clone, wheels)
    assert done.returncode == 0, done.stderr
    assert "There is no uv for this machine." in done.stderr
    assert {installer(clone, name) for name in ("hatchling", "trunkline", "trunkline_terminal")} == {"pip"}
    assert not (clone / ".venv/bin/uv").exists()


def test_a_failed_installation_leaves_no_success_marker(clone: Path, tmp_path: Path) -> None:
    """Without the wheels setup fails with a sentence and a hint, and the next run tries again."""
    empty = tmp_path / "empty"
    empty.mkdir()
    done = set_up(clone, empty)
    assert done.returncode == 1
    assert "Error: The dependencies could not be installed.\nHint: " in done.stderr
    assert not list(clone.glob(".venv/.installed-*"))


def test_the_pins_hold_no_address() -> None:
    """The committed pins name versions and hashes, and no server."""
    clients = (ROOT / "tests/clients/locks").glob("*.txt")
    named = [
        ROOT / lock
        for lock in ("requirements.txt", "deploy/requirements.txt", "scripts/uv.txt", "scripts/node.txt")
    ]
    for lock in [*named, *clients]:
        text = lock.read_text()
        assert "://" not in text and "--index" not in text
        assert all("--hash=sha256:" in line for line in text.splitlines() if line.startswith(" "))
