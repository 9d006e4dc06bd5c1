"""``python -m trunkline.acl [CHANNEL ...] [--plugin NAME ...] [--delegate AGENT=BLOCK,...]``: print the accounts of
an installation with these channels, these isolated plugins, and these blocks for other agents.
"""

import argparse
import sys

from trunkline.acl.accounts import accounts_config


def main(arguments: list[str]) -> int:
    """Print the accounts, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m trunkline.acl", description="Print the NATS accounts.")
    parser.add_argument("channels", nargs="*", metavar="CHANNEL", help="a channel with a worker of its own")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="NAME", help="a plugin that runs apart"
    )
    parser.add_argument(
        "--delegate", action="append", default=[], metavar="AGENT=BLOCK,...",
        help="blocks that `trunkline mcp serve BLOCK --as AGENT` may serve; one user for each agent",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    try:
        delegations = dict(map(_parse_delegations, given.delegate))
        sys.stdout.write(
            accounts_config(tuple(given.channels), plugins=tuple(given.plugin), delegations=delegations)
        )
    except ValueError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    return 0


def _parse_delegations(text: str) -> tuple[str, tuple[str, ...]]:
    agent, _, blocks = text.partition("=")
    return agent, tuple(blocks.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
