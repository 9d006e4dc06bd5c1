"""Folders that only their owner can read."""

from pathlib import Path


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700. Existing folders keep their mode.

    ``Path.mkdir(mode=..., parents=True)`` would create the parents with the default mode.

    Raises:
        OSError: a part of the path is a file, or cannot be written.
    """
    if folder.is_dir():
        return
    missing = [one for one in folder.parents if not one.exists()]
    for one in (*reversed(missing), folder):
        one.mkdir(mode=0o700, exist_ok=True)
