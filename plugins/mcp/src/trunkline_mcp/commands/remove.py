"""``trunkline mcp remove``: a server out of the file; what was kept of its sign-in goes too."""

from pathlib import Path

import click

from trunkline.api.cli import Command, print_done


@click.command(cls=Command, examples="trunkline mcp remove time\ntrunkline mcp remove garden/files")
@click.argument("server")
@click.pass_obj
def command(home: Path, server: str) -> None:
    """Remove a server. Its tools disappear at once; its own folder stays."""
    from trunkline_mcp.config_writer import forget_server

    forget_server(home, server)
    print_done(f"Removed {server}.")
