"""The endpoints of export and import. Archives are transferred as objects of the bus."""

import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio

from trunkline.contracts.memory.store import MemoryStore
from trunkline.contracts.memory.subjects import MEMORY_EXPORT, MEMORY_IMPORT
from trunkline.contracts.memory.transfer import (
    ExportMemory,
    ImportMemory,
    ImportProgress,
    MemoryExport,
    MemoryImport,
)
from trunkline.contracts.workers.subjects import EXPORT_STORE, IMPORT_STORE
from trunkline.workers.memory.background_jobs import BackgroundJobs
from trunkline.workers.memory.handlers.change_publisher import ChangePublisher
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline.workers.memory.log_writer import LogWriter
from trunkline_bus import Bus, BusError, Refusal, Request, new_id

_log = logging.getLogger(__name__)


class TransferHandlers:
    """Answers requests from a store. Temporary files are in ``cache``; ``jobs`` runs long work."""

    def __init__(
        self,
        store: MemoryStore,
        bus: Bus,
        cache: Path,
        logs: LogWriter,
        publisher: ChangePublisher,
        jobs: BackgroundJobs,
    ) -> None:
        self._store = store
        self._bus = bus
        self._cache = cache
        self._logs = logs
        self._publisher = publisher
        self._jobs = jobs

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        await endpoints.add(MEMORY_EXPORT, self._export)
        await endpoints.add_stream(MEMORY_IMPORT, self._import)

    async def _export(self, request: Request[ExportMemory]) -> MemoryExport:
        name = f"memory-{datetime.now(UTC):%Y%m%d-%H%M%S}-{new_id()[-6:].lower()}.tar"
        file = self._cache / name
        await anyio.Path(self._cache).mkdir(parents=True, exist_ok=True)
        await self._write_pending_logs()
        try:
            files = await self._store.export(file, derived=request.data.derived)
            info = await self._bus.objects(EXPORT_STORE).put_file(name, file)
        except OSError as error:
            reason = (error.strerror or "storage failed").lower()
            raise Refusal("write_failure", f"The archive could not be written: {reason}.") from error
        finally:
            await anyio.Path(file).unlink(missing_ok=True)
        return MemoryExport(object=name, size=info.size, files=files)

    async def _write_pending_logs(self) -> None:
        try:
            await self._logs.write_pending()
        except (BusError, Refusal, OSError) as error:
            _log.error(
                "the latest lines of the audit log and the cost ledger are not in the export: %s", error
            )

    def _import(self, request: Request[ImportMemory]) -> AsyncIterator[ImportProgress | MemoryImport]:
        async def work(on_progress: Callable[[ImportProgress], None]) -> MemoryImport:
            return await self._fetch_and_import(request.data, on_progress)

        return self._jobs.run_detached(work)

    async def _fetch_and_import(
        self, command: ImportMemory, on_progress: Callable[[ImportProgress], None]
    ) -> MemoryImport:
        """Fetch the archive and import it. The changes are published before the reply is sent."""
        file = self._cache / f"import-{new_id()}.tar"
        objects = self._bus.objects(IMPORT_STORE)
        try:
            if not await objects.get_file(command.object, file):
                raise Refusal("not_found", "The archive is missing or incomplete. Try again.")
            return await self._store.import_archive(file, command, on_progress)
        except OSError as error:
            reason = (error.strerror or "storage failed").lower()
            raise Refusal("write_failure", f"The archive could not be imported: {reason}.") from error
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.Path(file).unlink(missing_ok=True)
                await objects.delete(command.object)
                await self._publisher.publish_pending()
