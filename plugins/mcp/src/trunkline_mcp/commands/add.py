"""``trunkline mcp add``: a server into the file, checked as the host will check it."""

from pathlib import Path
from typing import Any

import click

from trunkline.api.cli import Command, print_done

EXAMPLES = """
trunkline mcp add time --readable ~/servers ~/servers/bin/mcp-server-time
trunkline mcp add --env-from BRAVE_API_KEY --network brave npx -y @modelcontextprotocol/server-brave-search
trunkline mcp add --url https://example.org/mcp --header-from Authorization=DOCS_AUTHORIZATION docs
trunkline mcp add --block garden --folder /srv/garden files npx -y @modelcontextprotocol/server-filesystem /workspace
"""


@click.command(cls=Command, examples=EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command_line", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default="", help="The URL of an HTTP server, instead of a command.")
@click.option(
    "--env", "env", multiple=True, metavar="NAME=VALUE", help="An environment variable of the server."
)
@click.option(
    "--env-from",
    multiple=True,
    metavar="NAME[=FROM]",
    help="An environment variable taken from your environment.",
)
@click.option(
    "--header-from",
    multiple=True,
    metavar="HEADER=FROM",
    help="An HTTP header whose value is taken from your environment.",
)
@click.option("--block", default="", help="Only this block can use its tools.")
@click.option(
    "--trusted",
    is_flag=True,
    help="Believe the server's annotations: tools that it declares read-only need no approval.",
)
@click.option("--network", is_flag=True, help="Let it reach other hosts, but no service on this machine.")
@click.option(
    "--host-network", is_flag=True, help="Let it use this machine's own network, including loopback."
)
@click.option(
    "--folder", default="", help="The only folder that it may write; the server sees it as /workspace."
)
@click.option("--readable", multiple=True, metavar="FOLDER", help="A folder that it may read; repeatable.")
@click.option("--replace", is_flag=True, help="Replace a server of the same name.")
@click.pass_obj
def command(home: Path, /, name: str, block: str, replace: bool, **options: Any) -> None:
    """Add a server, whose tools agents can then use. A running platform connects to it at once."""
    import trunkline
    from trunkline_mcp.config_writer import put_server

    if not (options["command_line"] or options["url"]):
        where = f" --block {block}" if block else ""
        raise trunkline.TrunklineError(
            f"{name} needs a command to run or a --url to reach over HTTP.",
            hint=f"For example: trunkline mcp add{where} --readable ~/servers {name} ~/servers/bin/mcp-server-{name}, "
            f"or: trunkline mcp add{where} {name} --url https://example.org/mcp",
        )
    put_server(home, block, name, _entry(**options), replace=replace)
    print_done(f'Added {name}. "trunkline mcp test {f"{block}/" if block else ""}{name}" connects to it.')


def _entry(
    *,
    command_line: tuple[str, ...],
    url: str,
    env: tuple[str, ...],
    env_from: tuple[str, ...],
    header_from: tuple[str, ...],
    trusted: bool,
    network: bool,
    host_network: bool,
    folder: str,
    readable: tuple[str, ...],
) -> dict[str, Any]:
    entry: dict[str, Any] = {"url": url} if url else {}
    if command_line:
        entry |= {"command": command_line[0], "args": list(command_line[1:])}
    variables: dict[str, Any] = dict(_pair(one) for one in env)
    variables |= {name: {"env": where or name} for name, _, where in (one.partition("=") for one in env_from)}
    headers = {name: {"env": where} for name, where in (_pair(one) for one in header_from)}
    more = {
        "env": variables,
        "headers": headers,
        "folder": folder,
        "readable": list(readable),
        "network": "host" if host_network else network,
    }
    entry |= {key: value for key, value in more.items() if value}
    return entry | ({"trust": "trusted"} if trusted else {})


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise click.UsageError(f"{text!r} must have the form NAME=VALUE.")
    return name, value
