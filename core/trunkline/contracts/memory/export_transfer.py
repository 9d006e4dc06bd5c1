"""Fetches an export of memory in pieces, because the export may be larger than this process's memory."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from trunkline.contracts.memory.subjects import MEMORY_EXPORT
from trunkline.contracts.memory.transfer import ExportMemory, MemoryExport
from trunkline.contracts.workers.subjects import EXPORT_STORE
from trunkline.errors import StorageError, Unavailable
from trunkline_bus import Bus, background_tasks

EXPORT_SECONDS = 3_600.0
"""Seconds to wait for memory to write an archive of itself."""


async def export_memory(
    bus: Bus,
    file: Path,
    *,
    derived: bool = False,
    timeout: float = EXPORT_SECONDS,
    on_progress: Callable[[int, int], None] = lambda done, size: None,
) -> MemoryExport:
    """Export memory to ``file``. The file appears when the archive is complete.

    ``derived`` includes the search index. ``timeout`` is how many seconds memory may take to write the archive.
    ``on_progress`` is called with the number of bytes received and the size of the archive.

    Raises:
        Unavailable: the archive did not arrive completely.
        StorageError: the file cannot be written.
        BusError: memory refused or does not answer.
    """
    done = await bus.call(MEMORY_EXPORT, ExportMemory(derived=derived), timeout=timeout)
    objects = bus.objects(EXPORT_STORE)
    part = file.with_name(file.name + ".part")
    try:
        part.unlink(missing_ok=True)
        async with _report_progress(part, done.size, on_progress):
            whole = await objects.get_file(done.object, part)
        if not whole:
            raise Unavailable("Memory was exported but did not arrive whole.", hint="Try again.")
        part.replace(file)
    except OSError as error:
        reason = (error.strerror or "storage failed").lower()
        raise StorageError(f"{file} cannot be written: {reason}.", hint="Choose another place.") from error
    finally:
        part.unlink(missing_ok=True)
        await objects.delete(done.object)
    return done


@asynccontextmanager
async def _report_progress(
    file: Path, size: int, on_progress: Callable[[int, int], None]
) -> AsyncIterator[None]:
    """Report periodically how large the file has become."""

    async def watch() -> None:
        while True:
            await anyio.sleep(0.2)
            if await anyio.Path(file).exists():
                on_progress((await anyio.Path(file).stat()).st_size, size)

    async with background_tasks() as group:
        group.start_soon(watch)
        yield
