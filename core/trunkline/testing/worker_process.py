"""A worker in a process of its own, which a test may kill."""

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio

from trunkline.contracts.workers.messages import WorkerKind
from trunkline.workers.plugin_process.resource_limits import die_with_parent

READY = re.compile(r"^The (\w+) worker is ready(?: at (\S+))?$", re.MULTILINE)


class WorkerProcess:
    """One ``trunkline run WORKER``. ``name`` distinguishes several of a kind."""

    def __init__(self, kind: WorkerKind, name: str, log: Path, environ: Mapping[str, str]) -> None:
        self.kind: WorkerKind = kind
        self.name = name
        self.log = log
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0

    @property
    def pid(self) -> int:
        """The process id; 0 when it does not run."""
        return self._process.pid if self.alive and self._process is not None else 0

    @property
    def alive(self) -> bool:
        """Report whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def address(self) -> str:
        """Return the HTTP address that the platform reported when it last became ready; "" when it did not."""
        found = READY.findall(self._new_text())
        return found[-1][1] if found else ""

    def launch(self) -> None:
        """Start the process, without waiting for it. On Linux it dies with the thread that starts it."""
        self._said = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trunkline.cli.main", "run", self.kind, "--log", "json"],
                env=self._environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    async def ready(self, seconds: float = 60.0) -> None:
        """Wait until it reports ready. Raises AssertionError with its log."""
        with anyio.move_on_after(seconds):
            while self.alive:
                if READY.search(self._new_text()):
                    return
                await anyio.sleep(0.02)
        raise AssertionError(f"the {self.name} worker did not get ready:\n{self.text()}")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal; with SIGKILL, return when the process is gone."""
        if self._process is not None and self.alive:
            self._process.send_signal(number)
            if number == signal.SIGKILL:
                self._process.wait()

    async def gone(self, seconds: float = 60.0) -> int:
        """Wait for the end and return the exit status. Raises TimeoutError."""
        process = self._process
        assert process is not None
        with anyio.fail_after(seconds):
            while (status := process.poll()) is None:  # noqa: ASYNC110 - a child of a test, no event to wait for
                await anyio.sleep(0.02)
        return status

    def text(self) -> str:
        """Return its whole log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _new_text(self) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._said)
            return log.read().decode(errors="replace")
