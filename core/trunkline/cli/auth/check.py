"""``trunkline auth check``: whether an identity may do something, and why."""

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command


@click.command(
    cls=Command,
    examples="trunkline auth check anna chat block:garden\ntrunkline auth check anna read memory:/diary/monday.md",
)
@click.argument("identity")
@click.argument("action")
@click.argument("resource")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(identity: str, action: str, resource: str, as_json: bool) -> int:
    """Ask whether IDENTITY may do ACTION with RESOURCE. Exits with 1 if not.

    A denial wins, and what nothing permits is refused.
    """
    from trunkline.cli.output import print_json

    found = with_auth(lambda auth: auth.check(identity, resource, action))
    if as_json:
        print_json(found)
    else:
        answer = "No" if not found.allowed else "Yes, once a person has approved" if found.asks else "Yes"
        by = f" ({', '.join(found.by)})" if found.by else ""
        click.echo(f"{answer}: {found.why}{by}")
    return 0 if found.allowed else 1
