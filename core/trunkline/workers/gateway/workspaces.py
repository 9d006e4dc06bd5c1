"""The workspaces of blocks: they are archived, restored and deleted together with their block.

The gateway process on the same home does this. On another host there is no such folder, and nothing happens.
"""

import shutil
from pathlib import Path

from anyio.to_thread import run_sync

from trunkline.home.paths import Home, make_folder, storage_errors
from trunkline_bus import new_id

AWAY, DELETED, LEFT = ".archive", ".deleted", ".left"
"""The folders for archived workspaces, for workspaces about to be deleted, and for workspaces whose block was
removed by hand. No block can have these names."""


class Workspaces:
    """Moves whole folders by rename, and removes them afterwards.

    Methods raise StorageError; then nothing was moved.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    async def has(self, block: str) -> bool:
        """Report whether a block has a workspace here with at least one entry."""
        return await run_sync(_has_files, self._home.workspace(block))

    async def archived(self) -> frozenset[str]:
        """Return the archives that have a workspace here."""
        return await run_sync(_folders, self._home.workspaces / AWAY)

    async def trashed(self) -> frozenset[str]:
        """Return the blocks and archives whose workspace is in the trash."""
        return await run_sync(_folders, self._home.workspaces / DELETED)

    async def archive(self, block: str, archive: str) -> None:
        """Move a block's workspace to the archive."""
        await run_sync(_move, self._home.workspace(block), self._archive_path(archive))

    async def restore(self, block: str, archive: str) -> None:
        """Move an archived workspace back."""
        await run_sync(_move, self._archive_path(archive), self._home.workspace(block))

    async def clear(self, block: str) -> None:
        """Remove the content of the workspace of a block that stays."""
        await run_sync(_remove, self._home.workspace(block))

    async def trash(self, block: str) -> None:
        """Move a block's workspace to the trash, before the block is deleted."""
        await run_sync(_trash, self._home.workspace(block), self._trash_path(block))

    async def trash_archive(self, archive: str) -> None:
        """Move an archived workspace to the trash, before the archive is deleted."""
        await run_sync(_trash, self._archive_path(archive), self._trash_path(archive))

    async def untrash(self, block: str) -> None:
        """Move the workspace of a block that was not deleted back from the trash."""
        await run_sync(_move, self._trash_path(block), self._home.workspace(block))

    async def untrash_archive(self, archive: str) -> None:
        """Move the workspace of an archive that was not deleted back from the trash."""
        await run_sync(_move, self._trash_path(archive), self._archive_path(archive))

    async def remove(self, name: str) -> None:
        """Delete the workspace of a block or an archive from the trash permanently."""
        await run_sync(_remove, self._trash_path(name))

    async def set_aside(self, block: str) -> Path:
        """Move a workspace that belongs to no block, so that a new block does not get it; return its new path."""
        aside = self._home.workspaces / LEFT / f"{block}_{new_id()}"
        await run_sync(_move, self._home.workspace(block), aside)
        return aside

    def path(self, block: str) -> Path:
        """Return the path of a block's workspace."""
        return self._home.workspace(block)

    def _archive_path(self, archive: str) -> Path:
        return self._home.workspaces / AWAY / archive

    def _trash_path(self, name: str) -> Path:
        return self._home.workspaces / DELETED / name


def _has_files(folder: Path) -> bool:
    with storage_errors(folder):
        return folder.is_dir() and next(folder.iterdir(), None) is not None


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


def _trash(source: Path, target: Path) -> None:
    if source.is_dir():
        _remove(target)
        _move(source, target)


def _remove(folder: Path) -> None:
    if folder.is_dir():
        with storage_errors(folder):
            shutil.rmtree(folder)
