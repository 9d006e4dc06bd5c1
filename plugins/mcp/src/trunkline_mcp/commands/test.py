"""``trunkline mcp test``: whether a server can be connected to, as the tools worker does it, and what it offers."""

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from trunkline.api.cli import Command, with_workers

if TYPE_CHECKING:
    from trunkline.api.bus import Bus
    from trunkline_mcp.server_config import ServerConfig
    from trunkline_mcp.server_connection import ServerStatus

STARTUP_SECONDS = 10.0
"""Seconds beyond the server's own time to start: for a tools worker that has to begin first."""

NOT_FOUND_HINT = (
    "The sandbox shows it only the system's programs (/usr). Give the program's absolute path and the folders "
    "that it needs: trunkline mcp add --replace --readable FOLDER ..."
)
"""For a server whose program, or what that needs, is not there."""


@click.command("test", cls=Command, examples="trunkline mcp test time\ntrunkline mcp test time --json")
@click.argument("server")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(home: Path, server: str, as_json: bool) -> None:
    """Connect to a server and show its tools. Fails when the server cannot be used.

    If the command starts a tools worker, the worker's log, also about other servers, is logs/mcp.log in the home.
    """
    from trunkline.api.cli import print_json

    wanted = _find_server(home, server)
    status = with_workers(lambda bus: _wait_for_status(home, wanted, bus), "memory", "tools", log="mcp")
    if as_json:
        print_json(status)
    else:
        _show(server, status)
    if status is None or status.state != "ready":
        raise SystemExit(1)


def _find_server(home: Path, identity: str) -> "ServerConfig":
    import trunkline
    from trunkline_mcp.server_config import load_servers, unknown_server_hint

    found = load_servers(home)
    for server in found.servers:
        if server.identity == identity:
            if server.disabled:
                raise trunkline.TrunklineError(
                    f"{identity} is disabled.", hint="Set disabled to false in its entry."
                )
            return server
    said = [problem.what for problem in found.problems if problem.where.endswith(f": {identity}")]
    raise trunkline.TrunklineError(
        f"{identity} cannot be used: {said[0]}." if said else f"There is no server {identity}.",
        hint='"trunkline mcp list" shows all servers.' if said else unknown_server_hint(home, identity),
    )


async def _wait_for_status(home: Path, server: "ServerConfig", bus: "Bus") -> "ServerStatus | None":
    from trunkline_mcp.host import wait_for_status

    return await wait_for_status(home, server, server.start_timeout + STARTUP_SECONDS)


def _refuse(server: str, why: str) -> NoReturn:
    import trunkline

    hint = NOT_FOUND_HINT if "not found" in why else ""
    raise trunkline.TrunklineError(f"{server} cannot be used: {why.removesuffix('.')}.", hint=hint)


def _show(server: str, status: "ServerStatus | None") -> None:
    from trunkline.api.cli import print_text

    if status is None:
        return click.echo(f"No tools worker of this home reports the status of {server}.", err=True)
    if status.state != "ready":
        _refuse(server, status.why or status.state)
    print_text(f"{server} is connected: {status.title or 'it gives no name'}, protocol {status.protocol}.")
    for tool in status.tools:
        print_text(f"  {tool}")
    for reason in status.left_out:
        print_text(f"  ({reason})")
