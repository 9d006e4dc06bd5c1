"""``trunkline mcp serve``: a block as an MCP server, for whoever began the command or over HTTP on this machine."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.attaching import with_workers
from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline import Bus

LOOK = 2.0
"""Seconds between two looks whether the block's tools have changed."""

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")

EXAMPLES = """
trunkline mcp serve main
trunkline mcp serve garden --as claude
trunkline mcp serve main --http --port 8421
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("block")
@click.option(
    "--as", "name", default="external", help="What the other agent is called in policies and history."
)
@click.option("--http", is_flag=True, help="Over HTTP on this machine, with the home's token, until Ctrl-C.")
@click.option("--port", default=0, help="The port, any free one by default.")
@click.pass_obj
def command(home: Path, block: str, name: str, http: bool, port: int) -> None:
    """Lend a block's permitted tools and its memory to another agent.

    Without --http it answers on standard input and output, for a program that begins it as a server.
    """
    import trunkline

    if NAME.fullmatch(name) is None:
        raise trunkline.TrunklineError(f"{name!r} is no name: a-z, 0-9, . _ and -, at most 32.")
    token = _token(home) if http else ""
    with_workers(lambda bus: _served(bus, block, f"agent:{name}", port, token), "memory", "tools")


def _token(home: Path) -> str:
    import trunkline

    try:
        token = (home / "token").read_text().strip()
    except OSError:
        token = ""
    if not token:
        raise trunkline.TrunklineError(
            f"There is no token in {home}.", hint='"trunkline up" makes one when it is started first.'
        )
    return token


async def _served(bus: "Bus", block: str, actor: str, port: int, token: str) -> None:
    import anyio

    from trunkline_mcp.serving.block import ServedBlock
    from trunkline_mcp.serving.server import BlockServer
    from trunkline_mcp.serving.transports import serve_http, serve_pipes

    served = BlockServer(ServedBlock(bus, block, actor))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.watch, LOOK)
        if token:
            await serve_http(served.server(), port, token, _tell)
        else:
            await serve_pipes(served.server())
        tasks.cancel_scope.cancel()


def _tell(address: str) -> None:
    click.echo(f"Serving at {address}. The token is in the home's file token. Stop with Ctrl-C.", err=True)
