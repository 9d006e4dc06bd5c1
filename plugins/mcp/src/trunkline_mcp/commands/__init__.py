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
    "list": "Show the servers, and how they stand.",
    "add": "Name a server, whose tools agents then have.",
    "remove": "Take a server out.",
    "test": "Connect to a server and show its tools.",
    "serve": "Lend a block to other agents, as an MCP server.",
    "login": "Sign in to a server that asks for it.",
}

HELP = """Use the tools of MCP servers, and lend a block to other agents.

mcp.json in the home names them, in the usual format (mcpServers); mcp/BLOCK.json those of one block. A server that is
a program runs in the sandbox. Its tools ask for approval, whatever it says of them, unless it is trusted.
"""


def group_of(home: Path) -> click.Group:
    """The commands for a home."""
    return LazyGroup(
        "mcp", package=__name__, table=VERBS, examples=EXAMPLES, help=HELP, context_settings={"obj": home}
    )
