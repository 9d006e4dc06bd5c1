"""``trunkline auth create``: an identity that may do nothing yet."""

from typing import TYPE_CHECKING, get_args

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command
from trunkline.contracts.auth.identity import IdentityType

if TYPE_CHECKING:
    from trunkline.contracts.auth.client import AuthClient

TYPES = [one for one in get_args(IdentityType) if one != "owner"]


@click.command(
    cls=Command,
    examples='trunkline auth create anna --name "Anna Berg"\ntrunkline auth create backup --type service',
)
@click.argument("id")
@click.option("--name", default="", help="The name that people see. Default: the id.")
@click.option("--type", "kind", type=click.Choice(TYPES), default="collaborator", show_default=True,
              help="The kind of person or program.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(id: str, name: str, kind: IdentityType, as_json: bool) -> None:
    """Create an identity.

    It sees nothing until you share a block with it (trunkline auth share), and cannot enter without a token (trunkline
    auth tokens create) or a pairing code (trunkline pair).
    """
    from trunkline.cli.output import print_json

    async def create(auth: "AuthClient") -> object:
        return await auth.create_identity(id, kind, name)

    made = with_auth(create)
    if as_json:
        print_json(made)
    else:
        click.echo(f"Created {id}. Share a block with it: trunkline auth share BLOCK {id}")
        click.echo(f"Sign it in, in a browser: trunkline pair --as {id}")
