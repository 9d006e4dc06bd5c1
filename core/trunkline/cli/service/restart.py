"""``trunkline service restart``"""

import click

from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline service restart")
def command() -> None:
    """Stop the service of this home and start it again, for example after a change of its settings or variables.

    Work in progress is finished or goes on after the start.
    """
    from trunkline.cli._support.service_definition import ServiceDefinition
    from trunkline.cli._support.service_manager import service_manager
    from trunkline.config import load_config
    from trunkline.home.paths import Home

    definition = ServiceDefinition.of(Home.of(load_config()))
    manager = service_manager()
    manager.require_installed(definition)
    manager.restart(definition)
    click.echo(f"The service {definition.name} was started again.")
