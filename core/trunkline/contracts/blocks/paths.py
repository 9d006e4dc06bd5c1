"""The rule for block names, and the paths of a block's folder and ``block.toml`` in memory. Text only, no I/O."""

import re

BLOCK_NAME = r"[a-z0-9][a-z0-9-]{0,31}"
"""The pattern of a block's name, which is part of subjects, paths and URLs. The names of isolated plugins and of
channels, which are users of the bus, follow the same rule.
"""

BLOCK_NAME_RULE = "1 to 32 characters: small letters, digits and dashes, beginning with a letter or digit"

BLOCKS_FOLDER = "blocks"
BLOCK_FILE = "block.toml"

_NAME = re.compile(BLOCK_NAME)


def is_block_name(text: str) -> bool:
    """Report whether a text matches the rule for block names."""
    return _NAME.fullmatch(text) is not None


def block_folder(block: str) -> str:
    """Return the folder of a block, from the memory root."""
    return f"{BLOCKS_FOLDER}/{block}"


def block_file_path(block: str) -> str:
    """Return the path of a block's settings file, from the memory root."""
    return f"{BLOCKS_FOLDER}/{block}/{BLOCK_FILE}"


def is_block_file(path: str) -> bool:
    """Report whether a path may name a block's settings file. A cache of these files must reload when such a path
    changes.
    """
    return path.rpartition("/")[2] == BLOCK_FILE
