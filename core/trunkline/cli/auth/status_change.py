"""Changes the status of an identity and says what ended. Contains no command."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth

if TYPE_CHECKING:
    from trunkline.contracts.auth.identity import IdentityStatus


def change_status(id: str, status: "IdentityStatus", sentence: str, *, as_json: bool) -> None:
    """Change the status of an identity and print a sentence, or the identity as JSON."""
    from trunkline.cli.output import print_json

    changed = with_auth(lambda auth: auth.change_identity(id, status))
    if as_json:
        print_json(changed)
    else:
        click.echo(sentence)
