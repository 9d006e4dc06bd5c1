"""Runs the official conformance suite, with its Node and the reference servers, all from npm and kept for the next run.

Nothing is installed without npm: the tests that need it report this.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGES = {
    "node": "24.21.0",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
}

PLACE = Path(sys.prefix) / "share" / "trunkline-mcp-tests"
"""Where the packages are kept: in the virtual environment, so they go with it."""

TIMEOUT_MS = "120000"
"""Milliseconds for a scenario: many run at once, and the machine may be busy."""

REVISIONS = ("2025-11-25", "2026-07-28")

_LINE = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed(?:, (\d+) warnings)?", re.MULTILINE)
_UNSCORED = re.compile(r"^  [✓✗] (\S+) \((\S+)\)", re.MULTILINE)


class Missing(Exception):
    """Something that the suite needs is not here; the text says what."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a scenario: the number of checks that passed, failed, warned. ``scored``: the revision requires
    it."""

    passed: int
    failed: int
    warned: int
    scored: bool

    @property
    def ok(self) -> bool:
        """Report whether no check failed or warned."""
        return self.failed == 0 and self.warned == 0


def packages() -> Path:
    """The folder with the packages, installed at the first time. Raises Missing."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        return _installed([f"{name}@{version}" for name, version in PACKAGES.items()])


def _installed(wanted: list[str]) -> Path:
    stamp = PLACE / "installed"
    if stamp.exists() and stamp.read_text() == " ".join(wanted):
        return PLACE
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not here, with which the conformance suite is installed")
    words = [npm, "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", "--no-save", *wanted]
    try:
        done = subprocess.run(words, cwd=PLACE, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired as error:
        raise Missing("npm did not install the conformance suite within five minutes") from error
    if done.returncode != 0:
        raise Missing(f"npm could not install the conformance suite: {done.stderr.strip()[-300:]}")
    stamp.write_text(" ".join(wanted))
    return PLACE


def node() -> Path:
    """The Node that the suite needs."""
    return packages() / "node_modules" / "node" / "bin" / "node"


@contextmanager
def client_that_stays(place: Path) -> Iterator[list[str]]:
    """Our host, waiting for scenarios; the words of the command line that hand one over to it."""
    here, at = Path(__file__).parent, place / "line"
    with subprocess.Popen(
        [sys.executable, str(here / "client.py"), str(at)], stderr=subprocess.DEVNULL
    ) as process:
        try:
            until = time.monotonic() + 30
            while not at.exists():
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("the client for the suite did not begin")
                time.sleep(0.05)
            yield ["--command", f"{sys.executable} -S -E {here / 'client_launcher.py'} {at}"]
        finally:
            process.kill()


def run(role: str, revision: str, words: Sequence[str], results: Path) -> Mapping[str, Verdict]:
    """Run all scenarios that a revision requires of a ``client`` or a ``server``, and the unscored ones; by
    scenario."""
    binary = packages() / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    line = [
        str(node()),
        str(binary),
        role,
        *words,
        "--requirements",
        revision,
        "--timeout",
        TIMEOUT_MS,
        "-o",
        str(results),
    ]
    environ = {**os.environ, "PATH": f"{node().parent}:{os.environ['PATH']}"}
    done = subprocess.run(line, cwd=results, env=environ, capture_output=True, text=True, timeout=280)
    said = done.stdout + done.stderr
    unscored = {name for name, _ in _UNSCORED.findall(said.partition("Not scored")[2])}
    found = {
        name: Verdict(int(passed), int(failed), int(warned or 0), name not in unscored)
        for name, passed, failed, warned in _LINE.findall(said)
    }
    if not found:
        raise RuntimeError(f"the suite said nothing of any scenario: {said[-2000:]}")
    return found
