"""A block's ``block.toml``: reading and writing its text. No I/O.

The file holds the owner's choices and nothing the program counts. The day it was made stands in its first line.
"""

import re
import tomllib
from datetime import UTC, datetime

import msgspec

from trunkline.messages.blocks import BlockConfig
from trunkline.toml import read_toml

_MADE = re.compile(r"# Made on (\S+)\.")


class BlockFileError(ValueError):
    """The file is not TOML, or holds what no block has; the text says which."""


def encode(config: BlockConfig, made: datetime) -> str:
    """The text of a new block's file; what is at its default is left out."""
    import tomlkit

    values = {name: value for name, value in msgspec.to_builtins(config).items() if value is not None}
    return f"# Made on {made.astimezone(UTC).isoformat(timespec='seconds')}.\n" + tomlkit.dumps(values)


def decode(text: str) -> BlockConfig:
    """The choices in a file. Raises BlockFileError."""
    try:
        return msgspec.convert(read_toml(text), BlockConfig)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BlockFileError(str(error)) from error


def made_on(text: str) -> datetime | None:
    """When the block was made, if its file still says so."""
    match = _MADE.match(text)
    try:
        made = datetime.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None
    return made if made is None or made.tzinfo else made.replace(tzinfo=UTC)
