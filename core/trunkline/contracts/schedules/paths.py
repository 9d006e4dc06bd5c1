"""The files of schedules in memory: ``blocks/BLOCK/schedules/NAME.toml``. Text only, no I/O."""

import re

from trunkline.contracts.blocks.paths import BLOCK_NAME, BLOCKS_FOLDER, block_folder

SCHEDULE_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
"""The pattern of a schedule's name, which is part of subjects and paths."""

SCHEDULE_NAME_RULE = "1 to 64 small letters, digits, dashes and underscores, beginning with a letter or digit"

SCHEDULES_FOLDER = "schedules"

_FILE = re.compile(rf"{BLOCKS_FOLDER}/({BLOCK_NAME})/{SCHEDULES_FOLDER}/({SCHEDULE_NAME})\.toml")
_NAME = re.compile(SCHEDULE_NAME)


def is_schedule_name(text: str) -> bool:
    """Report whether a text matches the rule for names of schedules."""
    return _NAME.fullmatch(text) is not None


def schedules_folder(block: str) -> str:
    """Return the folder of a block's schedules, from the memory root."""
    return f"{block_folder(block)}/{SCHEDULES_FOLDER}"


def schedule_path(block: str, name: str) -> str:
    """Return the path of a schedule's file, from the memory root."""
    return f"{schedules_folder(block)}/{name}.toml"


def schedule_of(path: str) -> tuple[str, str] | None:
    """Return the block and the name of the schedule whose file is at a path; None if none can be there."""
    found = _FILE.fullmatch(path)
    return (found[1], found[2]) if found is not None else None
