"""Exports and imports of all of memory, for the owner. Archives are on disk while they are on their way."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio.to_thread

from trunkline._util.private_folders import make_private
from trunkline.contracts.memory.export_transfer import export_memory
from trunkline.contracts.memory.import_preparation import prepare_import
from trunkline.contracts.memory.import_transfer import import_memory
from trunkline.contracts.memory.importer import Importer
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.errors import TrunklineError, Unavailable
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus, RemoteFault

ARCHIVE = "memory.tar"


class MemoryTransfer:
    """Exports memory to an archive, and imports archives. ``scratch`` is the folder for archives on their way.

    Methods raise Refusal: ``forbidden`` for anybody but the owner with a token for all blocks, ``invalid_request`` with
    the reason for an archive that cannot be used. They raise BusError, OSError and Unavailable.
    """

    def __init__(self, bus: Bus, scratch: Path, importers: Callable[[], Sequence[Importer]]) -> None:
        self._bus = bus
        self._scratch = scratch
        self._importers = importers

    @contextmanager
    def archive_path(self, sender: Sender) -> Iterator[Path]:
        """Yield the path for an archive. Whatever is in its folder is deleted at the end of the block."""
        sender.require_administrator("exports and imports memory")
        make_private(self._scratch)
        with tempfile.TemporaryDirectory(prefix=".transfer-", dir=self._scratch) as folder:
            yield Path(folder) / ARCHIVE

    async def export(self, target: Path, sender: Sender) -> None:
        """Write an archive of all of memory, with its history."""
        sender.require_administrator("exports memory")
        await export_memory(self._bus, target)

    async def bring(
        self, archive: Path, sender: Sender, *, kind: str | None, settings: bool, dry_run: bool
    ) -> MemoryImport:
        """Import an archive of Trunkline or, by an importer, of another system. ``kind`` names the system; without it
        the importers recognise the archive. Without ``settings`` the files that only the owner may change stay as they
        are. With ``dry_run`` nothing is changed.
        """
        actor = sender.require_administrator("imports memory")
        with ExitStack() as held:
            preparation = prepare_import(archive, self._importers(), archive.parent, kind=kind)
            try:
                ready = await anyio.to_thread.run_sync(held.enter_context, preparation)
                return await import_memory(self._bus, ready, actor=actor, settings=settings, dry_run=dry_run)
            except RemoteFault as fault:
                if fault.code != "bad_archive":
                    raise
                raise InvalidField((), fault.message) from fault
            except Unavailable:
                raise
            except TrunklineError as error:  # it names files, and a client sees no path of the server
                raise InvalidField((), error.sentence.replace(f"{archive.parent}/", "")) from error
