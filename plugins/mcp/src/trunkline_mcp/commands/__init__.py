"""``trunkline mcp``: which servers there are, and lending a block to other agents. One module a verb."""

from pathlib import Path

import click

from trunkline.api.cli import LazyGroup

EXAMPLES = """
trunkline mcp add time --readable ~/servers ~/servers/bin/mcp-server-time
trunkline mcp add docs --url https://example.org/mcp
trunkline mcp list
trunkline mcp test time
"""

VERBS: dict[str, str] = {
    "list": "List the servers with their status.",
    "add": "Add a server, whose tools agents can then use.",
    "remove": "Remove a server.",
    "test": "Connect to a server and show its tools.",
    "serve": "Serve a block to other agents, as an MCP server.",
    "login": "Sign in to a server that requires it.",
}

HELP = """Use the tools of MCP servers, and serve a block to other agents.

The file mcp.json in the home lists the servers in the usual format (mcpServers); mcp/BLOCK.json lists those of one
block. A server that is a program runs in the sandbox. Unless a server is trusted, every call of its tools needs
approval, whatever the server declares.
"""


def group_of(home: Path) -> click.Group:
    """The commands for a home."""
    return LazyGroup(
        "mcp", package=__name__, table=VERBS, examples=EXAMPLES, help=HELP, context_settings={"obj": home}
    )
