"""``trunkline mcp remove``: a server out of the file; what was kept of its sign-in goes too."""

from pathlib import Path

import click

from trunkline.cli.command import Command
from trunkline.cli.output import done


@click.command(cls=Command, examples="trunkline mcp remove time\ntrunkline mcp remove garden/files")
@click.argument("server")
@click.pass_obj
def command(home: Path, server: str) -> None:
    """Take a server out. Its tools are gone at once; a folder of its own stays."""
    from trunkline_mcp.config_writer import take_out
    from trunkline_mcp.connector import TOKENS
    from trunkline_mcp.oauth import Tokens
    from trunkline_mcp.server_config import FOLDER, Server

    block, _, name = server.rpartition("/")
    take_out(home, block, name)
    Tokens(home / FOLDER / TOKENS, Server(name, block)).forget()
    done(f"Removed {server}.")
