"""``trunkline mcp login``: the owner signs in at a server's page; the tokens go into the home."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command, print_done, print_text

if TYPE_CHECKING:
    from trunkline_mcp.server_config import ServerConfig


@click.command(cls=Command, examples="trunkline mcp login docs\ntrunkline mcp login docs --again")
@click.argument("server")
@click.option("--again", is_flag=True, help="First delete the stored sign-in.")
@click.pass_obj
def command(home: Path, server: str, again: bool) -> None:
    """Sign in to a server that requires it. The command prints the page to open and waits until you have signed in."""
    import anyio

    import trunkline
    from trunkline_mcp.server_config import load_servers, unknown_server_hint

    found = [one for one in load_servers(home).servers if one.identity == server and one.url]
    if not found:
        raise trunkline.TrunklineError(
            f"There is no server {server} that is reached over HTTP.", hint=unknown_server_hint(home, server)
        )
    anyio.run(_sign_in, home, found[0], again)
    print_done(f"Signed in to {server}.")


async def _sign_in(home: Path, server: "ServerConfig", again: bool) -> None:
    import trunkline
    from trunkline.api.sandbox import NoSandbox
    from trunkline_mcp.connector import Connector
    from trunkline_mcp.oauth_callback import listen_for_callback
    from trunkline_mcp.server_connection import error_text, root_cause

    async with listen_for_callback(
        home, lambda url: print_text(f"Open this page and grant access there:\n  {url}")
    ) as visit:
        dialler = Connector(home, home, NoSandbox(), visit=lambda _: visit)
        if again:
            dialler.tokens(server).forget()
        try:
            async with dialler.connect(server):
                pass
        except Exception as error:
            raise trunkline.TrunklineError(
                f"{server.identity} did not accept the sign-in:  {error_text(root_cause(error))}."
            ) from error
