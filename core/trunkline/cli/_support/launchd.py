"""launchd, as the service manager of a user on macOS."""

import os
import plistlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trunkline.cli._support.service_definition import ServiceDefinition
from trunkline.cli._support.service_manager import ServiceManager, ServiceState, run_manager

SCRIPT = '[ ! -r "$1" ] || { set -a; . "$1"; set +a; }; shift; exec "$@"'
"""Reads the file of variables and becomes the program: launchd has no setting for such a file."""

STOP_SECONDS = 90


class Launchd(ServiceManager):
    """Agents of the user, below ``~/Library/LaunchAgents``. They start when the user logs in."""

    def file(self, definition: ServiceDefinition) -> Path:
        """Return the path of the property list."""
        return Path.home() / "Library/LaunchAgents" / f"{_label(definition)}.plist"

    def text(self, definition: ServiceDefinition) -> str:
        """Return the property list."""
        log = str(_log(definition))
        agent = {
            "Label": _label(definition),
            "ProgramArguments": [
                "/bin/sh",
                "-c",
                SCRIPT,
                "sh",
                str(definition.variables),
                *definition.program,
            ],
            "EnvironmentVariables": {"TRUNKLINE_HOME": str(definition.home), "PATH": definition.path},
            "WorkingDirectory": str(definition.home),
            "RunAtLoad": True,
            "KeepAlive": True,
            "AbandonProcessGroup": True,  # background tasks outlive the service
            "ExitTimeOut": STOP_SECONDS,
            "StandardOutPath": log,
            "StandardErrorPath": log,
            "Umask": 0o077,
        }
        return plistlib.dumps(agent).decode()

    def state(self, definition: ServiceDefinition) -> ServiceState:
        """Return the state, as ``launchctl print`` has it."""
        said = run_manager("launchctl", "print", _target(definition), may_fail=True)
        found = re.search(r"^\s*pid = (\d+)$", said, re.MULTILINE)
        return ServiceState(self.file(definition).exists(), int(found[1]) if found else None)

    def load(self, definition: ServiceDefinition) -> Sequence[str]:
        """Load the agent, in place of a loaded one."""
        _log(definition).parent.mkdir(parents=True, exist_ok=True)
        run_manager("launchctl", "bootout", _target(definition), may_fail=True)
        run_manager("launchctl", "bootstrap", f"gui/{os.getuid()}", str(self.file(definition)))
        return ["macOS starts the service when you log in."]

    def unload(self, definition: ServiceDefinition) -> None:
        """Unload the agent."""
        run_manager("launchctl", "bootout", _target(definition))

    def stop(self, definition: ServiceDefinition) -> None:
        """Unload the agent, because launchd starts it again otherwise. Its file stays."""
        run_manager("launchctl", "bootout", _target(definition))

    def restart(self, definition: ServiceDefinition) -> None:
        """Restart the agent, or load it if it was stopped."""
        if self.state(definition).pid is None:
            self.load(definition)
            return
        run_manager("launchctl", "kickstart", "-k", _target(definition))

    def show_logs(self, definition: ServiceDefinition, lines: int, follow: bool) -> int:
        """Show the end of the log file."""
        more = ["-F"] if follow else []
        return subprocess.run(
            ["tail", "-n", str(lines), *more, str(_log(definition))], check=False
        ).returncode


def _label(definition: ServiceDefinition) -> str:
    return f"org.trunkline.{definition.name}"


def _target(definition: ServiceDefinition) -> str:
    return f"gui/{os.getuid()}/{_label(definition)}"


def _log(definition: ServiceDefinition) -> Path:
    return definition.home / "logs" / "service.log"
