"""``trunkline pair``: a code that signs in another browser, phone or program."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command
from trunkline.contracts.auth.scopes import TokenScope

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.contracts.auth.client import AuthClient
    from trunkline.contracts.auth.messages import PairingStarted

EXAMPLES = """
trunkline pair
trunkline pair --as anna --scope chat
trunkline pair --scope read --label "kitchen tablet"
trunkline pair --cancel
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--as", "identity", default="owner", show_default=True, metavar="ID", help="Who will be signed in."
)
@click.option("--scope", type=click.Choice([one.value for one in TokenScope]),
              help="What the session permits. Default: owner for the owner, chat for others.")  # fmt: skip
@click.option("--label", default="", help="The name of the device in the list of tokens.")
@click.option("--cancel", is_flag=True, help="End all codes that wait.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(identity: str, scope: str | None, label: str, cancel: bool, as_json: bool) -> None:
    """Show a code that signs in another browser, phone or program.

    The code works once and for ten minutes. Five wrong attempts end all codes that wait.
    """
    from trunkline.cli.output import print_json
    from trunkline.config import load_config

    if cancel:
        _print_cancelled(with_auth(lambda auth: auth.cancel_pairings()), as_json)
        return
    level = TokenScope(scope or ("owner" if identity == "owner" else "chat"))

    async def started(auth: "AuthClient") -> "PairingStarted":
        return await auth.start_pairing(identity, level, label=label)

    pairing = with_auth(started)
    config = load_config()
    link = _link(config, pairing.code)
    if as_json:
        print_json({"code": pairing.code, "expires": pairing.expires, "link": link or None})
    else:
        _show(pairing, config, link)


def _print_cancelled(number: int, as_json: bool) -> None:
    from trunkline.cli.output import print_json

    if as_json:
        print_json({"ended": number})
    else:
        click.echo(f"{number or 'No'} {'code' if number == 1 else 'codes'} ended.")


def _link(config: "Config", code: str) -> str:
    from trunkline.cli._support.gateway_address import remote_address

    address = remote_address(config)
    return f"{address}/pair#{code}" if address else ""


def _show(pairing: "PairingStarted", config: "Config", link: str) -> None:
    import sys

    from trunkline._util.local_time import format_local_time

    click.echo(f"Code: {pairing.code}   (until {format_local_time(pairing.expires)}, once)")
    if not link:
        click.echo(
            f"Type it at {_local_page(config)} in a browser of this machine. The gateway listens on this machine only; "
            "to reach it from a phone, see docs/how-to/reverse-proxy.md."
        )
        return
    click.echo(f"Type it at {link.partition('#')[0]}, or scan:")
    if sys.stdout.isatty():
        _print_qr(link)
    else:
        click.echo(link)


def _local_page(config: "Config") -> str:
    from trunkline.cli._support.gateway_address import local_address
    from trunkline.errors import TrunklineError

    try:
        return f"{local_address(config)}/pair"
    except TrunklineError:  # no gateway runs; the code waits on the bus until one does
        return 'the page /pair of the gateway, which "trunkline up" starts,'


def _print_qr(link: str) -> None:
    import segno

    segno.make(link, error="m").terminal(compact=True)
