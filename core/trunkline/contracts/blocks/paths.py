"""The rule for block names, and where a block's folder and its ``block.toml`` lie in memory. Text only, no I/O."""

import re

BLOCK_NAME = r"[a-z0-9][a-z0-9-]{0,31}"
"""The pattern of a block's name. It is part of subjects, paths and URLs. Isolated plugins and channels, which
are users of the bus, keep the same rule."""

BLOCK_NAME_RULE = "1 to 32 characters: small letters, digits and dashes, beginning with a letter or digit"

BLOCKS_FOLDER = "blocks"
BLOCK_FILE = "block.toml"

_NAME = re.compile(BLOCK_NAME)


def is_block_name(text: str) -> bool:
    """Report whether a text keeps the rule for block names."""
    return _NAME.fullmatch(text) is not None


def block_folder(block: str) -> str:
    """The folder of a block, from the memory root."""
    return f"{BLOCKS_FOLDER}/{block}"


def block_file_path(block: str) -> str:
    """The file of a block's own choices, from the memory root."""
    return f"{BLOCKS_FOLDER}/{block}/{BLOCK_FILE}"


def is_block_file(path: str) -> bool:
    """Report whether a path may name a block's file: whoever remembers one reads it again when such a path changes."""
    return path.rpartition("/")[2] == BLOCK_FILE
