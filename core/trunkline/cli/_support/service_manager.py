"""The service manager of this machine: systemd or launchd."""

import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trunkline.cli._support.service_definition import ServiceDefinition
from trunkline.errors import StorageError, TrunklineError
from trunkline.home.paths import storage_errors

SECONDS = 120.0
"""Seconds that a command of a service manager may take: it waits for the end of the old process."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of a service. ``pid`` is None when it does not run; ``since`` is when it started, "" if unknown."""

    is_installed: bool
    pid: int | None = None
    since: str = ""

    @property
    def is_running(self) -> bool:
        """Report whether the process runs."""
        return self.pid is not None

    def describe(self) -> str:
        """Return the end of a sentence about the service."""
        if self.pid is not None:
            return f"runs as process {self.pid}" + (f", since {self.since}" if self.since else "")
        return "is installed and does not run" if self.is_installed else "is not installed"

    def facts(self) -> dict[str, object]:
        """Return the state for JSON."""
        return {
            "installed": self.is_installed,
            "running": self.is_running,
            "pid": self.pid,
            "since": self.since,
        }


class ServiceManager(ABC):
    """Installs services of this user.

    Errors: every method that changes something raises StorageError for a file that cannot be written, and
    TrunklineError with the words of the service manager when that refuses.
    """

    @abstractmethod
    def file(self, definition: ServiceDefinition) -> Path:
        """Return the path of the service's file."""

    @abstractmethod
    def text(self, definition: ServiceDefinition) -> str:
        """Return the content of the service's file."""

    @abstractmethod
    def state(self, definition: ServiceDefinition) -> ServiceState:
        """Return the state of a service now."""

    @abstractmethod
    def load(self, definition: ServiceDefinition) -> Sequence[str]:
        """Start the service of a written file, now and at every boot. Return what the owner should know."""

    @abstractmethod
    def unload(self, definition: ServiceDefinition) -> None:
        """Stop a service, and start it no more."""

    @abstractmethod
    def stop(self, definition: ServiceDefinition) -> None:
        """Stop a service until the next start of it or of the machine."""

    @abstractmethod
    def restart(self, definition: ServiceDefinition) -> None:
        """Stop a service and start it again."""

    @abstractmethod
    def show_logs(self, definition: ServiceDefinition, lines: int, follow: bool) -> int:
        """Show the log, and return the exit status of the program that does it."""

    def install(self, definition: ServiceDefinition) -> Sequence[str]:
        """Write the file of a service, and start it. Return what the owner should know."""
        file = self.file(definition)
        with storage_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.text(definition), encoding="utf-8")
        return self.load(definition)

    def uninstall(self, definition: ServiceDefinition) -> None:
        """Stop a service and remove its file."""
        self.unload(definition)
        file = self.file(definition)
        with storage_errors(file):
            file.unlink(missing_ok=True)

    def require_installed(self, definition: ServiceDefinition) -> None:
        """Raise TrunklineError when there is no file of this service."""
        if not self.file(definition).exists():
            raise TrunklineError(
                f"The service {definition.name} of this home is not installed.",
                hint="Install it: trunkline service install",
            )


def service_manager() -> ServiceManager:
    """Return the service manager of this machine. Raises TrunklineError when there is none that is known."""
    from trunkline.cli._support.launchd import Launchd
    from trunkline.cli._support.systemd import Systemd

    if sys.platform == "darwin":
        return Launchd()
    if shutil.which("systemctl"):
        return Systemd()
    raise TrunklineError(
        "There is no service manager here that Trunkline knows: neither systemd nor launchd.",
        hint='Let another program start "trunkline up", for example a container: see deploy/README.md.',
    )


def run_manager(*command: str, may_fail: bool = False) -> str:
    """Run a program of the service manager and return its output. Raises TrunklineError with its words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StorageError(f"{command[0]} cannot be run: {error}.") from error
    if done.returncode != 0 and not may_fail:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
        raise TrunklineError(
            f"{' '.join(command)} failed: {said[0]}",
            hint="Run it yourself to see more. A service of a user needs a login session of this user.",
        )
    return done.stdout
