"""systemd, as the service manager of a user."""

import getpass
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trunkline.cli._support.service_definition import ServiceDefinition
from trunkline.cli._support.service_manager import ServiceManager, ServiceState, run_manager
from trunkline.errors import TrunklineError

UNIT = """\
# Written by "trunkline service install", which replaces it.
[Unit]
Description=Trunkline ({home})
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target
# Tried again for as long as it takes: a service that gave up would wait for a person.
StartLimitIntervalSec=0

[Service]
ExecStart={program}
Environment={variables}
EnvironmentFile=-{file}
WorkingDirectory={home}
Restart=always
RestartSec=2
# "trunkline up" ends its own processes in their order, and background tasks outlive it.
KillMode=process
TimeoutStopSec=90
UMask=0077

[Install]
WantedBy=default.target
"""


class Systemd(ServiceManager):
    """Units of the user, below ``~/.config/systemd/user``."""

    def file(self, definition: ServiceDefinition) -> Path:
        """Return the path of the unit."""
        config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        return Path(config) / "systemd/user" / _unit(definition)

    def text(self, definition: ServiceDefinition) -> str:
        """Return the unit."""
        variables = (f"TRUNKLINE_HOME={definition.home}", f"PATH={definition.path}")
        return UNIT.format(
            home=_escaped(str(definition.home)),
            program=" ".join(_quoted(word).replace("$", "$$") for word in definition.program),
            variables=" ".join(_quoted(one) for one in variables),
            file=_escaped(str(definition.variables)),
        )

    def state(self, definition: ServiceDefinition) -> ServiceState:
        """Return the state, as ``systemctl show`` has it."""
        properties = "MainPID,ExecMainStartTimestamp"
        said = run_manager(
            "systemctl", "--user", "show", _unit(definition), f"--property={properties}", may_fail=True
        )
        found = {name: value for name, _, value in (line.partition("=") for line in said.splitlines())}
        pid = int(found.get("MainPID") or 0) or None
        since = found.get("ExecMainStartTimestamp", "") if pid else ""
        return ServiceState(self.file(definition).exists(), pid, since)

    def load(self, definition: ServiceDefinition) -> Sequence[str]:
        """Enable and start the unit, and let the user's units run without a login."""
        run_manager("systemctl", "--user", "daemon-reload")
        run_manager("systemctl", "--user", "enable", _unit(definition))
        run_manager("systemctl", "--user", "restart", _unit(definition))
        user = getpass.getuser()
        try:
            run_manager("loginctl", "enable-linger", user)
        except TrunklineError as error:
            return [
                f"The service runs only while you are logged in ({error.sentence}). To change that: sudo loginctl "
                f"enable-linger {user}"
            ]
        return []

    def unload(self, definition: ServiceDefinition) -> None:
        """Stop and disable the unit."""
        run_manager("systemctl", "--user", "disable", "--now", _unit(definition))

    def uninstall(self, definition: ServiceDefinition) -> None:
        """Stop a service and remove its unit."""
        super().uninstall(definition)
        run_manager("systemctl", "--user", "daemon-reload")

    def stop(self, definition: ServiceDefinition) -> None:
        """Stop the unit, which stays enabled."""
        run_manager("systemctl", "--user", "stop", _unit(definition))

    def restart(self, definition: ServiceDefinition) -> None:
        """Restart the unit."""
        run_manager("systemctl", "--user", "restart", _unit(definition))

    def show_logs(self, definition: ServiceDefinition, lines: int, follow: bool) -> int:
        """Show the journal of the unit."""
        more = ["--follow"] if follow else []
        command = [
            "journalctl",
            "--user",
            f"--unit={_unit(definition)}",
            f"--lines={lines}",
            "--output=cat",
            *more,
        ]
        return subprocess.run(command, check=False).returncode


def _unit(definition: ServiceDefinition) -> str:
    return f"{definition.name}.service"


def _escaped(text: str) -> str:
    """Return a text in which no percent sign is a specifier (systemd.unit(5))."""
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """Return one word of a command line or of ``Environment=`` (systemd.syntax(7))."""
    safe = _escaped(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{safe}"'
