"""``trunkline auth activate``: makes an identity active."""

import click

from trunkline.cli.auth.status_change import change_status
from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline auth activate anna")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(id: str, as_json: bool) -> None:
    """Let a suspended identity in again, with the tokens that it had."""
    change_status(id, "active", f"{id} is active.", as_json=as_json)
