"""Virtual environments with programs of other people, whose dependencies need not fit ours.

Each file ``locks/NAME.txt`` pins the packages of one environment, with hashes and without addresses. uv installs them
beside the virtual environment of the tests, where they stay for the next run.
"""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from scripts.install import find_uv, uv_environ

LOCKS = Path(__file__).parent / "locks"
PLACE = Path(sys.prefix) / "share" / "trunkline-clients"
INSTALL_SECONDS = 300.0


class Missing(Exception):
    """A program cannot be had here; the text says why."""


def environment(name: str) -> Path:
    """Return the folder ``bin`` of the environment that the lock ``name`` describes. Raises Missing."""
    lock = LOCKS / f"{name}.txt"
    content = f"{sys.version}{lock.read_text()}".encode()
    place = PLACE / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            _install(place, lock)
            (place / "complete").touch()
    return place / "bin"


def _install(place: Path, lock: Path) -> None:
    uv = find_uv()
    if uv is None:
        raise Missing("there is no uv for this machine, which installs the client")
    _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(place)])
    install = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    _run([*install, "--python", str(place / "bin" / "python"), "-r", str(lock)])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, env=uv_environ(), capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"the client was not installed within {INSTALL_SECONDS:.0f} seconds") from None
    assert "Hash mismatch" not in done.stderr, done.stderr
    if done.returncode != 0:
        raise Missing(f"uv could not install the client: {done.stderr.strip()[-300:]}")
