"""``trunkline auth suspend``: makes an identity suspended."""

import click

from trunkline.cli.auth.status_change import change_status
from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline auth suspend anna")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(id: str, as_json: bool) -> None:
    """Shut an identity out until it is activated again. Its streams end, and its turns are cancelled."""
    change_status(id, "suspended", f"{id} is suspended.", as_json=as_json)
