"""``trunkline service logs``"""

import click

from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline service logs\ntrunkline service logs --follow --lines 20")
@click.option(
    "--lines", type=click.IntRange(1), default=100, show_default=True, help="The last so many lines."
)
@click.option("--follow", "-f", is_flag=True, help="Go on with new lines until Ctrl-C.")
def command(lines: int, follow: bool) -> int:
    """Show what the service of this home logged: one JSON object in each line."""
    from trunkline.cli._support.service_definition import ServiceDefinition
    from trunkline.cli._support.service_manager import service_manager
    from trunkline.config import load_config
    from trunkline.home.paths import Home

    definition = ServiceDefinition.of(Home.of(load_config()))
    manager = service_manager()
    manager.require_installed(definition)
    return manager.show_logs(definition, lines, follow)
