"""Archived blocks: a block's memory folder and its workspace are archived together and restored unchanged.

Memory moves its folder first; then the workspace is moved. After a crash in between, the same command moves the
workspace to match memory. Deletion moves the workspace to the trash first, so that its files cannot become part of
another block or archive. The trash is emptied after memory has deleted its folder.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from trunkline.contracts.blocks.messages import ArchivedBlock
from trunkline.contracts.blocks.paths import BLOCK_NAME, block_folder
from trunkline.errors import ErrorCode, StorageError
from trunkline.workers.gateway.block_store import BlockStore, unknown_block_error
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.workspaces import Workspaces
from trunkline_bus import Refusal, RemoteFault

_ARCHIVE = re.compile(rf"(?P<name>{BLOCK_NAME})_(?P<at>\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{{6}}Z)")
_AT = "%Y-%m-%dT%H-%M-%S-%fZ"


class BlockArchives:
    """Archives, restores and deletes blocks.

    Methods raise Refusal with a fixed code, StorageError, and BusError when memory does not answer.
    """

    def __init__(self, folders: BlockStore, workspaces: Workspaces) -> None:
        self._folders = folders
        self._workspaces = workspaces

    async def list_archives(self) -> tuple[ArchivedBlock, ...]:
        """Return all archives."""
        found = [
            match for name in await self._folders.folders("archive") if (match := _ARCHIVE.fullmatch(name))
        ]
        return tuple(
            ArchivedBlock(
                name=match["name"],
                archive=match[0],
                archived_at=datetime.strptime(match["at"], _AT).replace(tzinfo=UTC),
            )
            for match in found
        )

    async def archive(self, name: str, actor: str) -> None:
        """Archive a stopped block."""
        if await self._folders.file(name) is None:
            return await self._finish_archive(name)
        archive = f"{name}_{datetime.now(UTC).strftime(_AT)}"
        await self._folders.move(block_folder(name), f"archive/{archive}", actor, f"archive block {name}")
        try:
            await self._workspaces.archive(name, archive)
        except StorageError:
            await self._folders.move(f"archive/{archive}", block_folder(name), actor, f"keep block {name}")
            raise

    async def restore(self, name: str, actor: str) -> None:
        """Restore the newest archive of a name.

        Refused with ``conflict`` when a block of that name exists, or when files that belong to no block are
        in its place.
        """
        if await self._folders.file(name) is not None:
            return await self._finish_restore(name)
        archive = await self._newest(name)
        await self._workspaces.untrash_archive(archive)
        if await self._workspaces.has(name) and archive in await self._workspaces.archived():
            raise _taken(name, self._workspaces.path(name))
        await self._folders.move(f"archive/{archive}", block_folder(name), actor, f"restore block {name}")
        try:
            await self._workspaces.restore(name, archive)
        except StorageError:
            await self._folders.move(block_folder(name), f"archive/{archive}", actor, f"keep {archive}")
            raise

    async def delete(self, name: str, actor: str) -> None:
        """Delete the newest archive of a name. After a crash, finish the deletion that was interrupted."""
        archive = await self._half_deleted(name)
        if archive is not None:
            await self._workspaces.trash_archive(archive)
        else:
            archive = await self._newest(name)
            await self._workspaces.trash_archive(archive)
            try:
                await self._folders.delete(f"archive/{archive}", actor, f"delete archived block {name}")
            except (Refusal, RemoteFault):
                await self._workspaces.untrash_archive(archive)
                raise
        await self._workspaces.remove(archive)

    async def has_archive(self, name: str) -> bool:
        """Report whether a name has an archive, and no restore of the name was interrupted."""
        found = _newest_of(name, (one.archive for one in await self.list_archives()))
        return found is not None and await self._orphaned_workspace(name) is None

    async def unfinished_archive(self, name: str) -> str | None:
        """Return the newest archive of a name whose workspace was not moved because archiving was
        interrupted, else None."""
        newest = _newest_of(name, (one.archive for one in await self.list_archives()))
        moved = await self._workspaces.archived() | await self._workspaces.trashed()
        return newest if newest not in moved and await self._workspaces.has(name) else None

    async def _half_deleted(self, name: str) -> str | None:
        """Return an archive that is deleted from memory but whose workspace still exists, else None.

        While a block of the same name exists, an orphaned workspace belongs to that block: its restore was
        interrupted.
        """
        known = {one.archive for one in await self.list_archives()}
        unfinished = _newest_of(name, await self._workspaces.trashed() - known)
        if unfinished is not None or await self._folders.file(name) is not None:
            return unfinished
        return await self._orphaned_workspace(name)

    async def _finish_archive(self, name: str) -> None:
        archive = await self.unfinished_archive(name)
        if archive is None:
            raise unknown_block_error(name)
        await self._workspaces.archive(name, archive)

    async def _finish_restore(self, name: str) -> None:
        """Finish an interrupted restore, or bring the workspace back to a block whose deletion was
        interrupted."""
        left, has = await self._orphaned_workspace(name), await self._workspaces.has(name)
        if left is not None and not has:
            return await self._workspaces.restore(name, left)
        if left is None and not has and name in await self._workspaces.trashed():
            return await self._workspaces.untrash(name)
        if left is None:
            await self._newest(name)
            sentence = (
                f"There is a block called {name!r} now. Delete it first: trunkline blocks delete {name}"
            )
            raise refusal(ErrorCode.CONFLICT, sentence)
        raise _taken(name, self._workspaces.path(name))

    async def _newest(self, name: str) -> str:
        newest = _newest_of(name, (one.archive for one in await self.list_archives()))
        if newest is None:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no archived block called {name!r}.")
        return newest

    async def _orphaned_workspace(self, name: str) -> str | None:
        """Return the newest archived workspace of this name whose archive memory no longer has."""
        known = {one.archive for one in await self.list_archives()}
        return _newest_of(name, await self._workspaces.archived() - known)


def _taken(name: str, place: Path) -> Refusal:
    return refusal(
        ErrorCode.CONFLICT,
        f"Nothing was restored: {place} already contains files, and the files of the archived block {name!r} belong "
        "there. Move them away and give the command again.",
    )


def _newest_of(name: str, archives: Iterable[str]) -> str | None:
    matches = (match for one in archives if (match := _ARCHIVE.fullmatch(one)))
    return max((match[0] for match in matches if match["name"] == name), default=None)
