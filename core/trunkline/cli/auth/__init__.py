"""The commands of ``trunkline auth``. Each command is the module of that name."""

import click

from trunkline.cli.command import LazyGroup

EXAMPLES = """
trunkline auth list
trunkline auth create anna --name "Anna Berg"
trunkline auth share garden anna --may chat
trunkline auth shared garden
trunkline auth tokens create anna --scope chat --days 90
trunkline auth suspend anna
"""

VERBS: dict[str, str] = {
    "list": "List the identities.",
    "create": "Create an identity, which may do nothing yet.",
    "suspend": "Shut an identity out until it is activated again.",
    "activate": "Let a suspended identity in again.",
    "revoke": "Shut an identity out for good.",
    "share": "Share a block with an identity.",
    "shared": "Show who may use which block.",
    "unshare": "Stop sharing a block with an identity.",
    "tokens": "List, create and revoke access tokens.",
    "passkeys": "List and remove passkeys.",
    "rotate-key": "End every access token, session and passkey.",
    "whoami": "Show as whom commands of this terminal act.",
    "check": "Ask whether an identity may do something, and why.",
    "audit": "Show sign-ins and changes of identities and tokens.",
    "export": "Print identities, permissions, tokens and passkeys as JSON, without credentials.",
}
"""The verbs in the order of the help, with the line that the help shows without importing them."""


@click.group(cls=LazyGroup, package=__name__, table=VERBS, examples=EXAMPLES)
def command() -> None:
    """Decide who may use Trunkline besides you, and end what they may do.

    Commands at this terminal act as the owner and need no token, so they also help when every token is lost. What
    agents may do is decided by "trunkline permissions".
    """
