"""Sends an archive to memory through the object store, in pieces, because the archive may be larger than this process's
memory.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import anyio

from trunkline.contracts.memory.store import NOWHERE
from trunkline.contracts.memory.subjects import MEMORY_IMPORT
from trunkline.contracts.memory.transfer import ImportMemory, ImportProgress, MemoryImport
from trunkline.contracts.workers.subjects import IMPORT_STORE
from trunkline.errors import Unavailable
from trunkline_bus import Bus, Scope, new_id

IDLE_SECONDS = 120.0
"""Seconds without a message after which the memory worker counts as ended. During an import it sends heartbeats."""

Mode = Literal["merge", "restore"]


async def import_memory(
    bus: Bus,
    archive: Path,
    *,
    actor: str,
    mode: Mode = "merge",
    settings: bool = False,
    dry_run: bool = False,
    scope: Scope = NOWHERE,
    on_progress: Callable[[ImportProgress], None] = lambda progress: None,
) -> MemoryImport:
    """Import an archive into memory and return the result. ``ImportMemory`` describes the arguments.

    Raises:
        Unavailable: the memory worker ended before the import was done; importing again completes the import.
        RemoteFault: memory refused the import; the code is ``bad_archive`` if the archive is not valid. Nothing was
            changed.
        BusError: memory does not answer.
        OSError: the archive cannot be read.
    """
    name = f"import-{new_id()}.tar"
    objects = bus.objects(IMPORT_STORE)
    size = (await anyio.Path(archive).stat()).st_size
    on_progress(ImportProgress(stage="sending", total=size))
    try:
        await objects.put_file(name, archive)
        request = ImportMemory(object=name, actor=actor, mode=mode, settings=settings, dry_run=dry_run)
        async with bus.call_streaming(
            MEMORY_IMPORT, request, scope=scope, idle_timeout=IDLE_SECONDS
        ) as replies:
            async for said in replies:
                if isinstance(said, MemoryImport):
                    return said
                on_progress(said)
    finally:
        await objects.delete(name)
    raise Unavailable("Memory ended before the import was done.", hint="Import again; imported data remains.")
