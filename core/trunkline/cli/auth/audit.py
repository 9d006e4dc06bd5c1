"""``trunkline auth audit``: sign-ins, and changes of identities and tokens."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from click import Context


@click.command(cls=Command, examples="trunkline auth audit --since 7d\ntrunkline auth audit --json")
@click.option(
    "--since",
    default="1d",
    show_default=True,
    metavar="WHEN",
    help="Only entries since this time: 30m, 2h or 7d ago, or a date.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one entry on each line.")
@click.pass_context
def command(context: "Context", since: str, as_json: bool) -> None:
    """Show sign-ins, refused ones too, and changes of identities and tokens. "trunkline audit" shows everything."""
    from trunkline.cli.audit import command as audit

    context.invoke(audit, event="auth", since=since, as_json=as_json)
