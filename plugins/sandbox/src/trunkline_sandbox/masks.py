"""Find the files of a workspace that are hidden from programs: files with secrets, and bare
repositories."""

import os
from pathlib import Path
from typing import NamedTuple

from trunkline import ToolError
from trunkline.api.paths import MAX_DEPTH, SETTINGS, hides_password, is_bare, is_protected

EMPTY_FILE = Path(__file__).with_name("empty")
"""The content that a program sees in place of a protected file."""

MOST_MASKED = 1_000
"""Each is a mount of its own."""


class Masks(NamedTuple):
    """By their paths in the workspace: the files that are empty for a program, and the folders that are read-only."""

    hidden: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()


def masked_files(workspace: Path | None) -> Masks:
    """Return the files of a workspace to hide. A link stands for its target, if that is in the workspace.

    Raises:
        ToolError: the workspace is not there, cannot be looked through, or holds too many.
    """
    if workspace is None:
        return Masks()
    hidden: list[str] = []
    locked: list[str] = []
    try:
        _scan(str(workspace), (), hidden, locked)
    except OSError as error:
        raise ToolError(
            f"The workspace cannot be searched for protected files: {error.strerror}.",
            kind="unavailable",
        ) from error
    return Masks(tuple(hidden), tuple(locked))


def _scan(folder: str, parts: tuple[str, ...], hidden: list[str], locked: list[str]) -> None:
    with os.scandir(folder) as entries:
        inner, settings = [], []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif entry.is_symlink():
                continue
            elif is_protected((*parts[-1:], entry.name)):
                hidden.append("/".join((*parts, entry.name)))
            elif entry.name in SETTINGS:
                settings.append(entry.name)
    if settings:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            hidden += ("/".join((*parts, name)) for name in settings if hides_password(handle, name))
            if parts and is_bare(handle):
                locked.append("/".join(parts))
        finally:
            os.close(handle)
    if len(hidden) + len(locked) > MOST_MASKED:
        raise ToolError(
            f"The workspace holds more than {MOST_MASKED} files with protected names and bare repositories. Nothing "
            "was run.",
            kind="too_large",
        )
    if inner and len(parts) >= 4 * MAX_DEPTH:
        raise ToolError(
            "The workspace is nested too deeply to be searched. Nothing was run.", kind="too_large"
        )
    for name in inner:
        _scan_if_present(f"{folder}/{name}", (*parts, name), hidden, locked)


def _scan_if_present(folder: str, parts: tuple[str, ...], hidden: list[str], locked: list[str]) -> None:
    try:
        _scan(folder, parts, hidden, locked)
    except (FileNotFoundError, NotADirectoryError):  # gone meanwhile
        return
