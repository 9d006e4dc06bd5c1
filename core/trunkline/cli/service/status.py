"""``trunkline service status``"""

import click

from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline service status\ntrunkline service status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> int:
    """Show whether the service of this home is installed and runs. The exit status is 1 when it does not run."""
    from trunkline.cli._support.service_definition import ServiceDefinition
    from trunkline.cli._support.service_manager import service_manager
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.home.paths import Home
    from trunkline.home.run_file import read_run_file

    home = Home.of(load_config())
    definition = ServiceDefinition.of(home)
    state = service_manager().state(definition)
    run = read_run_file(home)
    address = run.gateway if run is not None else ""
    if as_json:
        print_json({"service": definition.name, **state.facts(), "address": address})
    else:
        click.echo(f"The service {definition.name} {state.describe()}.")
        if state.is_running and address:
            click.echo(f"Trunkline is ready at {address}.")
        elif state.is_running:
            click.echo("Trunkline is starting, or cannot start: trunkline service logs")
        elif run is not None:
            click.echo(f"Trunkline runs on this home all the same, as process {run.pid}.")
    return 0 if state.is_running else 1
