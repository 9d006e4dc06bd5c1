"""``trunkline auth tokens``: the access tokens."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName
from trunkline.contracts.auth.scopes import TokenScope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunkline.contracts.auth.client import AuthClient
    from trunkline.contracts.auth.identity import IdentityRecord
    from trunkline.contracts.auth.messages import AccessToken

EXAMPLES = """
trunkline auth tokens list --identity anna
trunkline auth tokens create anna --scope chat --days 90 --label laptop
trunkline auth tokens create owner --scope read --block garden
trunkline auth tokens revoke tok_3f9a
"""

SCOPES = [scope.value for scope in TokenScope]


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List, create and revoke access tokens.

    Scopes, each with those before it: read (lists and answers), chat (messages), approve (decisions about calls),
    operate (blocks and models), owner (everything; only for tokens of the owner).
    """


@command.command(
    "list", examples="trunkline auth tokens list\ntrunkline auth tokens list --identity anna --json"
)
@click.option("--identity", metavar="ID", help="Only tokens of this identity.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_tokens(identity: str | None, as_json: bool) -> None:
    """List the access tokens and sessions, also those that ended in the last day."""
    from trunkline.cli.output import print_json, print_table

    async def listed(auth: "AuthClient") -> "tuple[AccessToken, ...]":
        found = await auth.tokens(identity)
        if not found and identity is not None:
            _require_identity(identity, await auth.identities())
        return found

    found = with_auth(listed)
    if as_json:
        print_json({"tokens": found})
    elif found:
        rows = [(one.id, one.identity, one.scope, one.kind, _state(one), one.label) for one in found]
        print_table(rows, header=("ID", "IDENTITY", "SCOPE", "KIND", "UNTIL", "LABEL"))
    else:
        click.echo("There are no access tokens.")


@command.command(
    "create",
    examples="trunkline auth tokens create anna --scope chat --days 90\ntrunkline auth tokens create owner --json",
)
@click.argument("identity")
@click.option(
    "--scope", type=click.Choice(SCOPES), default="chat", show_default=True, help="What it permits."
)
@click.option("--days", type=click.IntRange(min=1), help="Days until it expires. Default: it does not.")
@click.option("--block", "blocks", type=BlockName(), multiple=True, help="Only this block; may be repeated.")
@click.option("--label", default="", help="What it is for.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create_token(
    identity: str, scope: str, days: int | None, blocks: tuple[str, ...], label: str, as_json: bool
) -> None:
    """Create an access token for IDENTITY and print it, once: nobody can show it again.

    A program sends it as "Authorization: Bearer TOKEN".
    """
    from datetime import UTC, datetime, timedelta

    from trunkline.cli.output import print_json

    expires = datetime.now(UTC) + timedelta(days=days) if days else None
    new = with_auth(
        lambda auth: auth.issue_token(
            identity, TokenScope(scope), label=label, expires=expires, blocks=blocks or None
        )
    )
    if as_json:
        print_json({"token": new.token, "text": new.text})
        return
    click.echo(new.text)
    click.echo(
        f"This is {new.token.id}, a token of {identity} with the scope {scope}. Keep it now.", err=True
    )


@command.command("revoke", examples="trunkline auth tokens revoke tok_3f9a")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def revoke_token(id: str, as_json: bool) -> None:
    """Revoke a token or a session. It is refused at once, its streams end, and the turns that it started are cancelled.

    The first characters of an ID are enough.
    """
    from trunkline.cli.output import print_json

    ended = with_auth(lambda auth: auth.revoke_token(id))
    if as_json:
        print_json(ended)
    elif ended.tokens:
        click.echo(f"Revoked {id}. {_turns(ended.turns)}")
    else:
        click.echo(f"{id} had ended before.")


def _require_identity(id: str, identities: "Iterable[IdentityRecord]") -> None:
    """Raise TrunklineError for an id that nobody has, so that a typing error does not read as "no tokens"."""
    from trunkline.errors import TrunklineError

    if id not in {one.id for one in identities}:
        raise TrunklineError(f"There is no identity {id!r}.", hint="trunkline auth list shows them.")


def _turns(number: int) -> str:
    if not number:
        return "It had no running turn."
    return f"{number} running {'turn is' if number == 1 else 'turns are'} cancelled."


def _state(token: "AccessToken") -> str:
    from datetime import UTC, datetime

    from trunkline._util.local_time import format_local_time

    if token.ended is not None:
        return token.ended.replace("_", " ")
    if token.expires is None:
        return "no end"
    at = format_local_time(token.expires)
    return f"{at} (expired)" if token.expires <= datetime.now(UTC) else at
