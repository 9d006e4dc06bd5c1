"""``trunkline auth unshare``: stops sharing a block with an identity."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.contracts.auth.client import AuthClient


@click.command(cls=Command, examples="trunkline auth unshare garden anna")
@click.argument("block", type=BlockName())
@click.argument("identity")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(block: str, identity: str, as_json: bool) -> None:
    """Stop sharing BLOCK with IDENTITY. Other rules that name the identity stay."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.auth.share_policy import is_share
    from trunkline.errors import TrunklineError

    async def unshare(auth: "AuthClient") -> list[str]:
        found = [one for one in (await auth.policies(identity)).policies if is_share(one, block)]
        return [(await auth.revoke(one.id)).policy.id for one in found]

    removed = with_auth(unshare)
    if not removed:
        raise TrunklineError(
            f"{block} is not shared with {identity}.", hint="trunkline auth shared shows what is shared."
        )
    if as_json:
        print_json({"removed": removed})
    else:
        click.echo(f"{block} is not shared with {identity} any more.")
