"""``trunkline auth export``: identities, permissions, tokens and passkeys as JSON, without credentials."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.contracts.auth.client import AuthClient


@click.command(cls=Command, examples="trunkline auth export > who-may-enter.json")
def command() -> None:
    """Print identities, policies, tokens and passkeys as JSON.

    It contains no token, no key and no hash of one. "trunkline memory export" contains the files of identities and
    policies, too.
    """
    from trunkline.cli.output import print_json

    async def exported(auth: "AuthClient") -> dict[str, object]:
        policies = await auth.policies()
        return {
            "identities": await auth.identities(),
            "policies": policies.policies,
            "unreadable": policies.unreadable,
            "tokens": await auth.tokens(),
            "passkeys": await auth.passkeys(),
        }

    print_json(with_auth(exported))
