"""``trunkline auth list``: the identities."""

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline auth list\ntrunkline auth list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the identities, the owner first."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    found = with_auth(lambda auth: auth.identities())
    if as_json:
        print_json({"identities": found})
        return
    rows = [
        (
            one.id,
            one.type,
            one.status,
            "" if one.id == "owner" else format_local_time(one.created),
            one.display_name,
        )
        for one in found
    ]
    print_table(rows, header=("ID", "TYPE", "STATUS", "CREATED", "NAME"))
