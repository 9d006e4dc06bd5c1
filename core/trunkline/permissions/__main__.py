"""``python -m trunkline.permissions [CHANNEL ...]``: print the NATS accounts of an installation with these channels."""

import sys

from trunkline.permissions.nats import accounts


def main(channels: list[str]) -> int:
    """Print the accounts. Returns the exit status."""
    try:
        sys.stdout.write(accounts(tuple(channels)))
    except ValueError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
