"""``trunkline service uninstall``"""

import click

from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline service uninstall")
def command() -> None:
    """Stop the service of this home and remove it. The home stays as it is, the file with variables too."""
    from trunkline.cli._support.service_definition import ServiceDefinition
    from trunkline.cli._support.service_manager import service_manager
    from trunkline.config import load_config
    from trunkline.home.paths import Home

    definition = ServiceDefinition.of(Home.of(load_config()))
    manager = service_manager()
    manager.require_installed(definition)
    manager.uninstall(definition)
    click.echo(f"The service {definition.name} is stopped and removed.")
