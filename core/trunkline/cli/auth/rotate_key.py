"""``trunkline auth rotate-key``: ends every access token and session."""

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command


@click.command(cls=Command, examples="trunkline auth rotate-key\ntrunkline auth rotate-key --yes")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(yes: bool, as_json: bool) -> None:
    """End every access token and session by a new key, after a key or a backup of the home got into other hands.

    The token of the home stays. To replace that, too, stop Trunkline, delete the file "token" of the home, and start
    Trunkline again.
    """
    from trunkline.cli.confirmation import confirm
    from trunkline.cli.output import print_json

    if not yes:
        confirm("End every access token and session?", done="ended")
    ended = with_auth(lambda auth: auth.rotate_key())
    if as_json:
        print_json(ended)
    else:
        click.echo(f"{ended.tokens} access tokens ended, and {ended.turns} of their turns are cancelled.")
