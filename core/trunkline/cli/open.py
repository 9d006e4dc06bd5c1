"""``trunkline open``: the web app in a browser of this machine, signed in."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.contracts.auth.client import AuthClient

PAGE = "open-*.html"


@click.command(cls=Command, examples="trunkline open\ntrunkline open --print")
@click.option("--print", "only_print", is_flag=True, help="Print the link instead of opening it.")
@click.option("--json", "as_json", is_flag=True, help="Print the link as JSON instead of opening it.")
def command(only_print: bool, as_json: bool) -> None:
    """Open the web app in your browser, signed in.

    The link works once, for a minute, and only in a browser of this machine. It contains no token.
    """
    import webbrowser

    from trunkline.cli._support.gateway_address import local_address
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.home.paths import Home

    config = load_config()
    address = local_address(config)

    async def started(auth: "AuthClient") -> str:
        return (await auth.start_pairing(label="browser of this machine", is_local=True)).code

    link = f"{address}/pair#{with_auth(started)}"
    if as_json:
        print_json({"link": link})
    elif only_print:
        click.echo(link)
    elif not webbrowser.open(_page(Home.of(config).run, link).as_uri()):
        click.echo(f"There is no browser here. Open this link on this machine within a minute: {link}")


def _page(folder: Path, link: str) -> Path:
    """Return a page that only its owner can read and that leads to the link: every user of the machine sees the
    arguments of a browser, and a link among them.
    """
    import os
    import secrets

    for old in folder.glob(PAGE):
        old.unlink(missing_ok=True)
    page = folder / PAGE.replace("*", secrets.token_hex(8))
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>Trunkline</title>'
            f'<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={link}">'
        )
    return page
