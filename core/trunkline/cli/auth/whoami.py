"""``trunkline auth whoami``: as whom the commands of this terminal act."""

import click

from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline auth whoami\ntrunkline auth whoami --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """Show as whom commands of this terminal act: as the owner of the home, by its files."""
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.contracts.actors import OWNER

    home = load_config().home
    if as_json:
        print_json({"id": OWNER, "type": OWNER, "scope": OWNER, "home": str(home)})
    else:
        click.echo(f"You are the owner of {home}: whoever can read its files may do everything here.")
