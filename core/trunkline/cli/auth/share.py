"""``trunkline auth share``: lets an identity use a block."""

from typing import TYPE_CHECKING, get_args

import click

from trunkline.cli.attached_workers import with_workers
from trunkline.cli.command import Command
from trunkline.cli.completion_types import BlockName
from trunkline.contracts.auth.share_policy import ShareAction

if TYPE_CHECKING:
    from trunkline.contracts.auth.messages import PolicyView
    from trunkline_bus import Bus


@click.command(
    cls=Command, examples="trunkline auth share garden anna\ntrunkline auth share garden anna --may approve"
)
@click.argument("block", type=BlockName())
@click.argument("identity")
@click.option("--may", type=click.Choice(get_args(ShareAction)), default="chat", show_default=True,
              help="What the identity may do in the block.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(block: str, identity: str, may: ShareAction, as_json: bool) -> None:
    """Share BLOCK with IDENTITY.

    It then sees all conversations of the block and what its agent knows. read: see them. chat: write, too. approve:
    decide about calls, too. operate: start, stop and change the block, too.
    """
    from trunkline.cli._support.blocks import require_block
    from trunkline.cli.output import print_json
    from trunkline.contracts.auth.client import AuthClient
    from trunkline.contracts.auth.share_policy import is_share, share_policy

    async def share(bus: "Bus") -> "PolicyView":
        await require_block(bus, block)
        auth = AuthClient(bus)
        for one in (await auth.policies(identity)).policies:
            if is_share(one, block):
                await auth.revoke(one.id)
        return await auth.grant(share_policy(block, identity, may))

    shared = with_workers(share, "gateway", "memory")
    if as_json:
        print_json(shared)
    else:
        click.echo(f"{identity} may {may} in {block} from now on.")
