"""The commands of ``trunkline service``. Each command is the module of that name."""

import click

from trunkline.cli.command import LazyGroup

EXAMPLES = """
trunkline service install
trunkline service status
trunkline service logs --follow
trunkline service restart
trunkline service uninstall
"""

VERBS: dict[str, str] = {
    "install": "Start Trunkline now and at every boot.",
    "uninstall": "Stop the service and start it no more.",
    "restart": "Stop the service and start it again.",
    "status": "Show whether the service is installed and runs.",
    "logs": "Show what the service logged.",
}
"""The verbs in the order of the help, with the line that the help shows without importing them."""


@click.group(cls=LazyGroup, package=__name__, table=VERBS, examples=EXAMPLES)
def command() -> None:
    """Let this machine run Trunkline in the background, and start it again when it ends.

    The service is one of your user (systemd on Linux, launchd on macOS) and needs no administrator. Each home has a
    service of its own.
    """
