"""``trunkline mcp serve``: a block as an MCP server, for whoever began the command or over HTTP on this machine."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command, with_workers

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from trunkline.api.bus import Bus
    from trunkline_mcp.block_server.block import ServedBlock

POLL_SECONDS = 2.0
"""Seconds between two looks whether the block's tools have changed."""

EXAMPLES = """
trunkline mcp serve main
trunkline mcp serve garden --as claude
trunkline mcp serve main --http --port 8421
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("block")
@click.option("--as", "name", default="external", help="The name of the other agent in policies and history.")
@click.option(
    "--http", is_flag=True, help="Serve over HTTP on this machine, to whoever has a token, until Ctrl-C."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port of --http. Default: any free port."
)
@click.pass_obj
def command(home: Path, block: str, name: str, http: bool, port: int) -> None:
    """Serve a block's permitted tools and its memory to another agent.

    Without --http, it communicates over standard input and output, for an agent that starts it as a program.
    """
    import trunkline
    from trunkline.api.memory import BLOCK_NAME_RULE, is_block_name

    if not is_block_name(name):
        raise trunkline.TrunklineError(f"{name!r} is not a valid name: {BLOCK_NAME_RULE}.")
    if not is_block_name(block):
        raise trunkline.TrunklineError(f"{block!r} is not the name of a block: {BLOCK_NAME_RULE}.")
    token = _token(home) if http else ""
    with_workers(lambda bus: _serve(bus, home, block, name, port, token), "memory", "tools")


def _token(home: Path) -> str:
    import trunkline

    try:
        token = (home / "token").read_text().strip()
    except OSError:
        token = ""
    if not token:
        raise trunkline.TrunklineError(
            f"There is no token in {home}.", hint='"trunkline up" creates one at its first start.'
        )
    return token


async def _serve(bus: "Bus", home: Path, block: str, agent: str, port: int, token: str) -> None:
    import anyio

    from trunkline_mcp.block_server.block import ServedBlock

    served_block = ServedBlock(bus, block, agent)
    await _require_block(served_block)
    async with anyio.create_task_group() as tasks:
        if token:
            await _serve_http(tasks, bus, home, served_block, port, token)
        else:
            await _serve_stdio(tasks, served_block)
        tasks.cancel_scope.cancel()


async def _serve_stdio(tasks: "TaskGroup", block: "ServedBlock") -> None:
    from trunkline_mcp.block_server.server import BlockServer
    from trunkline_mcp.block_server.transports import serve_stdio

    served = BlockServer(block)
    tasks.start_soon(served.watch_tools, POLL_SECONDS)
    await serve_stdio(served.server())


async def _serve_http(
    tasks: "TaskGroup", bus: "Bus", home: Path, block: "ServedBlock", port: int, token: str
) -> None:
    from trunkline.api.gateway import open_block_guard
    from trunkline_mcp.block_server.server import BlockServer
    from trunkline_mcp.block_server.transports import serve_http

    with ExitStack() as listening:
        async with open_block_guard(bus, home, token, block.block) as guard:
            served = BlockServer(block, guard)
            tasks.start_soon(served.watch_tools, POLL_SECONDS)
            await serve_http(served.server(), port, guard, partial(_announce, listening, home, block.block))


async def _require_block(served_block: "ServedBlock") -> None:
    """Raises TrunklineError when there is no such block. One that may not look into memory is believed."""
    import trunkline
    from trunkline_mcp.block_server.block import CallRefusedError

    try:
        names = await served_block.list_blocks()
    except CallRefusedError:
        return
    if served_block.block not in names:
        raise trunkline.TrunklineError(
            f"There is no block {served_block.block}.",
            hint=f'There are: {", ".join(names)}. "trunkline blocks create" creates one.',
        )


def _announce(listening: ExitStack, home: Path, block: str, address: str) -> None:
    from trunkline.api.cli import Listener, registered_listener

    credential = f"the token in {home / 'token'}, or an access token"
    purpose = f"the block {block}, for other agents (mcp serve)"
    listening.enter_context(
        registered_listener(home / "run", Listener(address=address, purpose=purpose, credential=credential))
    )
    click.echo(
        f"Serving at {address}. The token is in the home's file token; access tokens count too. Stop with Ctrl-C.",
        err=True,
    )
