"""``python -m trunkline.acl [CHANNEL ...] [--plugin NAME ...] [--lend AGENT=BLOCK,...]``: print the accounts of
an installation with these channels, these plugins in processes of their own, and these blocks lent to other agents.
"""

import argparse
import sys

from trunkline.acl.accounts import accounts_config


def main(arguments: list[str]) -> int:
    """Print the accounts. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m trunkline.acl", description="Print the NATS accounts.")
    parser.add_argument("channels", nargs="*", metavar="CHANNEL", help="a channel with a worker of its own")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="NAME", help="a plugin that runs apart"
    )
    parser.add_argument(
        "--lend", action="append", default=[], metavar="AGENT=BLOCK,...",
        help="blocks that `trunkline mcp serve BLOCK --as AGENT` may lend; one user for each agent",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    try:
        lent = dict(map(_parse_delegations, given.lend))
        sys.stdout.write(accounts_config(tuple(given.channels), plugins=tuple(given.plugin), lent=lent))
    except ValueError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    return 0


def _parse_delegations(text: str) -> tuple[str, tuple[str, ...]]:
    agent, _, blocks = text.partition("=")
    return agent, tuple(blocks.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
