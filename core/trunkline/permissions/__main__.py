"""``python -m trunkline.permissions [CHANNEL ...] [--plugin NAME ...]``: print the NATS accounts of an installation
with these channels, and these plugins in processes of their own."""

import argparse
import sys

from trunkline.permissions.nats import accounts


def main(arguments: list[str]) -> int:
    """Print the accounts. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m trunkline.permissions", description="Print the NATS accounts."
    )
    parser.add_argument("channels", nargs="*", metavar="CHANNEL", help="a channel with a worker of its own")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="NAME", help="a plugin that runs apart"
    )
    given = parser.parse_args(arguments)
    try:
        sys.stdout.write(accounts(tuple(given.channels), plugins=tuple(given.plugin)))
    except ValueError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
