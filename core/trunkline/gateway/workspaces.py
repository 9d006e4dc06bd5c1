"""The folders in which blocks' tools work: they go along when a block is put away, brought back or deleted.

The gateway process on the same home does it; elsewhere there is no such folder, and nothing happens.
"""

import shutil
from pathlib import Path

from anyio.to_thread import run_sync

from trunkline.runtime.home import Home, make_folder, storage_errors

AWAY = ".archive"
"""Where archived workspaces lie; no block can be called so."""


class Workspaces:
    """Moves and removes whole folders by rename. Raises StorageError; then nothing was moved."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def has(self, block: str) -> bool:
        """Whether a block has a folder here."""
        return await run_sync(self._home.workspace(block).is_dir)

    async def away(self) -> frozenset[str]:
        """The archives that have a folder here."""
        return await run_sync(_folders, self._home.workspaces / AWAY)

    async def put_away(self, block: str, archive: str) -> None:
        """Move a block's folder to the archive."""
        await run_sync(_move, self._home.workspace(block), self._away(archive))

    async def bring_back(self, block: str, archive: str) -> None:
        """Move an archived folder back."""
        await run_sync(_move, self._away(archive), self._home.workspace(block))

    async def delete(self, block: str) -> None:
        """Remove a block's folder for good."""
        await run_sync(_remove, self._home.workspace(block))

    async def delete_archived(self, archive: str) -> None:
        """Remove an archived folder for good."""
        await run_sync(_remove, self._away(archive))

    def _away(self, archive: str) -> Path:
        return self._home.workspaces / AWAY / archive


def _folders(place: Path) -> frozenset[str]:
    return (
        frozenset(entry.name for entry in place.iterdir() if entry.is_dir())
        if place.is_dir()
        else frozenset()
    )


def _move(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    make_folder(target.parent)
    with storage_errors(target):
        source.rename(target)


def _remove(folder: Path) -> None:
    if folder.is_dir():
        with storage_errors(folder):
            shutil.rmtree(folder)
