"""The files of a workspace that no program may see: those with protected names (MB-F15, MB-T7)."""

import os
from pathlib import Path

from trunkline._util.paths import DEEPEST, is_protected
from trunkline.errors import ToolError

EMPTY = Path(__file__).with_name("empty")
"""What a program finds in the place of a protected file."""

MOST_MASKED = 1_000
"""Each is a mount of its own."""


def masked(workspace: Path | None) -> tuple[str, ...]:
    """The protected files of a workspace, by their paths in it.

    A link is none: what it leads to is in the workspace, and masked there if it is to be, or not within reach.

    Raises:
        ToolError: the workspace is not there, cannot be looked through, or holds too many.
    """
    found: list[str] = []
    if workspace is None:
        return ()
    try:
        _look(str(workspace), (), found)
    except OSError as error:
        raise ToolError(
            f"The workspace cannot be looked through for protected files: {error.strerror}.",
            kind="unavailable",
        ) from error
    return tuple(found)


def _look(folder: str, parts: tuple[str, ...], found: list[str]) -> None:
    with os.scandir(folder) as entries:
        inner = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif is_protected((*parts[-1:], entry.name)) and not entry.is_symlink():
                found.append("/".join((*parts, entry.name)))
    if len(found) > MOST_MASKED:
        raise ToolError(
            f"The workspace holds more than {MOST_MASKED} files with protected names. Nothing was run.",
            kind="too_large",
        )
    if inner and len(parts) >= 4 * DEEPEST:
        raise ToolError(
            "The workspace is nested too deeply to be looked through. Nothing was run.", kind="too_large"
        )
    for name in inner:
        _look_if_there(f"{folder}/{name}", (*parts, name), found)


def _look_if_there(folder: str, parts: tuple[str, ...], found: list[str]) -> None:
    try:
        _look(folder, parts, found)
    except (FileNotFoundError, NotADirectoryError):  # gone meanwhile
        return
