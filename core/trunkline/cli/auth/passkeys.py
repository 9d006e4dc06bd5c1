"""``trunkline auth passkeys``: the passkeys with which browsers sign in."""

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Group

EXAMPLES = """
trunkline auth passkeys list
trunkline auth passkeys remove pk_3f9a5b7c9d1e3f5a7b9c
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List and remove passkeys. They are added in the web app."""


@command.command(
    "list", examples="trunkline auth passkeys list\ntrunkline auth passkeys list --identity anna --json"
)
@click.option("--identity", metavar="ID", help="Only passkeys of this identity.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_passkeys(identity: str | None, as_json: bool) -> None:
    """List the passkeys, with the scope of the sessions that they open and their last use."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    found = with_auth(lambda auth: auth.passkeys(identity))
    if as_json:
        print_json({"passkeys": found})
    elif found:
        used = [format_local_time(one.used) if one.used else "never" for one in found]
        rows = [
            (one.id, one.identity, one.scope, one.host, at, one.label)
            for one, at in zip(found, used, strict=True)
        ]
        print_table(rows, header=("ID", "IDENTITY", "SCOPE", "HOST", "USED", "LABEL"))
    else:
        click.echo("There are no passkeys.")


@command.command("remove", examples="trunkline auth passkeys remove pk_3f9a5b7c9d1e3f5a7b9c")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def remove_passkey(id: str, as_json: bool) -> None:
    """Remove a passkey. The sessions that it opened end at once, their running turns are cancelled, and the passkeys
    that were added in these sessions are removed too.
    """
    from trunkline.cli.output import print_json

    removed = with_auth(lambda auth: auth.remove_passkey(id))
    if as_json:
        print_json(removed)
    else:
        click.echo(f"Removed. Passkeys: {removed.passkeys}, ended sessions: {removed.tokens}.")
