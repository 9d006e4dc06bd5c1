"""``trunkline`` as processes: the whole platform, and commands beside it."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

PROGRAM = (sys.executable, "-m", "trunkline.cli.main")


class Up:
    """A ``trunkline up`` that said it is ready."""

    def __init__(self, environ: Mapping[str, str], folder: Path, arguments: tuple[str, ...] = ()) -> None:
        self.environ = dict(environ)
        self.home = Path(environ["TRUNKLINE_HOME"])
        self.out, self.err = folder / "up.out", folder / "up.err"
        with self.out.open("ab") as out, self.err.open("ab") as err:
            begin = out.tell()
            self.process = subprocess.Popen(
                [*PROGRAM, "up", "--log", "json", *arguments],
                env=self.environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while not (found := re.search(rb"ready at (\S+)", self.out.read_bytes()[begin:])):
            assert self.process.poll() is None and time.monotonic() < deadline, self.err.read_text()
            time.sleep(0.02)
        self.url = found.group(1).decode()

    @property
    def token(self) -> str:
        return (self.home / "token").read_text().strip()

    def processes(self) -> list[psutil.Process]:
        """Return all processes: the workers' process and its descendants."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def stop(self) -> None:
        """SIGTERM, and wait for the end of every process."""
        processes = self.processes()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.err.read_text()
        assert not [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def run_program(environ: Mapping[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [*PROGRAM, *arguments], env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def git(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
    """Return the output of the git program, without personal settings."""
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "safe.directory=*", *arguments],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", **(environ or {})},
        capture_output=True, text=True, errors="replace", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
