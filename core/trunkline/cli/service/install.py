"""``trunkline service install``"""

import click

from trunkline.cli.command import Command

EXAMPLES = """
trunkline service install
TRUNKLINE_HOME=/srv/agents trunkline service install
trunkline service install --show
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--show", is_flag=True, help="Print the file of the service, and change nothing.")
def command(show: bool) -> None:
    """Install the service of this home, and start it.

    The service has the program and the PATH of now. It does not have the other variables of this shell: write the API
    keys that Trunkline needs into the file that this command names, one NAME=value in each line. The file is yours
    alone. To change the service, install it again.
    """
    from trunkline.cli._support.service_definition import ServiceDefinition
    from trunkline.cli._support.service_manager import service_manager
    from trunkline.config import load_config
    from trunkline.errors import TrunklineError
    from trunkline.home.paths import Home
    from trunkline.home.run_file import read_run_file

    home = Home.of(load_config())
    definition = ServiceDefinition.of(home)
    manager = service_manager()
    if show:
        click.echo(manager.text(definition), nl=False)
        return
    run = read_run_file(home)
    if run is not None and run.pid != manager.state(definition).pid:
        raise TrunklineError(
            f"Trunkline already runs on this home, as process {run.pid}.",
            hint="Stop it (Ctrl-C where it runs), then install the service.",
        )
    definition.write_variables()
    for note in manager.install(definition):
        click.echo(note)
    click.echo(f"The service {definition.name} is installed and starts at every boot.")
    click.echo(f"Its variables, such as API keys, are in {definition.variables}.")
    click.echo("To see whether it runs: trunkline service status. After a change: trunkline service restart.")
