"""``trunkline auth revoke``: shuts an identity out for good."""

import click

from trunkline.cli.auth.status_change import change_status
from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline auth revoke anna\ntrunkline auth revoke anna --yes")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(id: str, yes: bool, as_json: bool) -> None:
    """Shut an identity out for good. Its tokens and streams end, and its turns are cancelled.

    The identity stays in the list, so that nobody else gets its id and its grants.
    """
    from trunkline.cli.confirmation import confirm

    if not yes:
        confirm(f"Revoke {id} for good?", done="revoked")
    change_status(id, "revoked", f"{id} is revoked.", as_json=as_json)
