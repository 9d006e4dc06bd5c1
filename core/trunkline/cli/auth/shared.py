"""``trunkline auth shared``: who may use which block."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.contracts.policies.messages import Policy


@click.command(cls=Command, examples="trunkline auth shared\ntrunkline auth shared garden")
@click.argument("block", type=BlockName(), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(block: str | None, as_json: bool) -> None:
    """Show who may use which block, and who is denied it; with BLOCK, only what concerns it.

    You may use every block, and are not in the list.
    """
    from trunkline.cli.output import print_json, print_table
    from trunkline.policy.block_access import policies_about_block

    listed = with_auth(lambda auth: auth.policies())
    if listed.unreadable:  # what they deny is not known
        click.echo(
            f"Nobody else may use any block while these cannot be read: {', '.join(listed.unreadable)}",
            err=True,
        )
    found = policies_about_block(listed.policies, block)
    if as_json:
        print_json({"policies": found, "unreadable": listed.unreadable})
    elif found:
        print_table([_row(one) for one in found], header=("BLOCK", "WHO", "MAY", "RULE"))
    else:
        # The name is repeated: a rule can be about a block that does not exist yet, so a misspelt one is no error.
        what = f"a block called {block}" if block else "any block"
        click.echo(f"No rule lets anybody else use {what}.", err=True)


def _row(policy: "Policy") -> tuple[str, str, str, str]:
    from trunkline.contracts.policies.messages import UNCONDITIONAL

    action = "everything" if policy.action == "*" else policy.action
    may = action if policy.effect == "allow" else f"not {action}"
    condition = "" if policy.conditions == UNCONDITIONAL else ", on conditions"
    return policy.resource.removeprefix("block:"), policy.subject, f"{may}{condition}", policy.id
