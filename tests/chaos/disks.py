"""Small disks in memory that can be filled and emptied. Needs root on Linux."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BALLAST = "ballast"
PIECE = 256 * 1024
SIZE = 192
"""Mebibytes of a disk."""


def why_not() -> str:
    """Why there can be no small disk here; "" when there can."""
    if os.geteuid() != 0:
        return "a small disk is mounted, which needs root"
    if shutil.which("mount") is None:
        return "a small disk is mounted, which needs mount(8)"
    return ""


@contextmanager
def small_disk(at: Path) -> Iterator["Disk"]:
    """A file system of its own at this folder; the data goes to its ``root``. Raises ``OSError`` when it may not be."""
    at.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", str(at)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"a small disk could not be mounted on {at}: {done.stderr.strip()}")
    try:
        yield Disk(at)
    finally:
        subprocess.run(["umount", "-l", str(at)], check=False)


class Disk:
    """A file system that is filled up and emptied with one file beside its ``root``."""

    def __init__(self, at: Path) -> None:
        self.root = at / "root"
        self.root.mkdir()
        self._ballast = at / BALLAST

    def fill(self, *, spare: int = 0) -> None:
        """Leave no room, or ``spare`` bytes."""
        handle = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        piece = PIECE
        try:
            while piece:
                try:
                    os.write(handle, b"\0" * piece)
                except OSError:
                    piece //= 8
            os.ftruncate(handle, max(0, os.fstat(handle).st_size - spare))
        finally:
            os.close(handle)

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)
