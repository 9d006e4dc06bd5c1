"""``trunkline mcp list``: the servers of the files, and how the tools worker says they stand."""

from pathlib import Path
from typing import Any

import click

from trunkline.api.cli import Command
from trunkline_mcp.host import read_statuses
from trunkline_mcp.server_config import ServerConfig, load_servers
from trunkline_mcp.server_connection import ServerStatus

NO_PLATFORM = "No platform runs on this home, so no server is connected."
START_HINT = '"trunkline up" starts one, and "trunkline mcp test SERVER" tries one server without it.'


@click.command(cls=Command, examples="trunkline mcp list\ntrunkline mcp list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(home: Path, as_json: bool) -> None:
    """List the servers with their status. Values of env and headers are never shown."""
    from trunkline.api.cli import print_json, print_table, print_text

    found, statuses = load_servers(home), read_statuses(home)
    rows = [_row(server, statuses) for server in found.servers]
    problems = [{"where": one.where, "what": one.what, "left_out": one.fatal} for one in found.problems]
    if as_json:
        return print_json({"servers": rows, "problems": problems})
    if rows:
        print_table([_line(row) for row in rows], header=("SERVER", "RUNS", "TRUST", "STATE", "TOOLS"))
    else:
        click.echo('No MCP servers. "trunkline mcp add NAME COMMAND" names one.')
    if rows and statuses is None:
        print_text(f"{NO_PLATFORM} {START_HINT}", err=True)
    for problem in found.problems:
        print_text(f"{problem.where}: {problem.what}{'; left out' if problem.fatal else ''}.", err=True)


def _row(server: ServerConfig, statuses: dict[str, ServerStatus] | None) -> dict[str, Any]:
    status = (statuses or {}).get(server.identity)
    state = "disabled" if server.disabled else status.state if status else "not running"
    return {
        "server": server.identity,
        "runs": server.url or server.command[0],
        "trust": server.trust,
        "network": server.network or bool(server.url),
        "state": state,
        "why": _why(server, status, is_known=statuses is not None),
        "title": status.title if status else "",
        "protocol": status.protocol if status else "",
        "tools": list(status.tools) if status else [],
        "left_out": list(status.left_out) if status else [],
    }


def _why(server: ServerConfig, status: ServerStatus | None, *, is_known: bool) -> str:
    if status is not None:
        return status.why if status.state != "ready" else ""
    return "" if is_known or server.disabled else NO_PLATFORM


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    state = f"{row['state']}: {row['why']}" if row["why"] not in ("", NO_PLATFORM) else row["state"]
    return row["server"], row["runs"], row["trust"], state, str(len(row["tools"]))
