"""Watches folders: changed files are added to memory soon after the change, and after every restart.

The watcher polls, because polling works on every disk, network drives included. The interval depends on the duration of
a poll. A file is added only if it did not change between two polls, so no partly written file is read.
"""

import fcntl
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.config.settings import DocumentsSettings, WatchedFolder
from trunkline.documents.file_scan import SourceFile, documents_folder, mirror_folder, scan
from trunkline.documents.ingester import Ingester, IngestReport
from trunkline.documents.reader_pool import reader_pool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.errors import StorageError
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
PAUSE_FACTOR = 50
"""The minimum pause between polls, as a multiple of the duration of a poll: polling uses at most 2 % of a processor."""

SETTLED_SECONDS = 2.0
"""The age in seconds at which a file is added in the first poll that finds it."""

LOCK_SECONDS = 5.0

FileStamp = tuple[int, int]
"""The modification time of a file in nanoseconds, and its size."""


@dataclass(frozen=True, slots=True)
class WatcherDeps:
    """The dependencies of a folder watcher: bus, readers, limits, the actor that it writes as, and the callback for
    reports."""

    bus: Bus
    readers: ReaderRegistry
    bounds: DocumentsSettings
    actor: str
    on_report: Callable[[Path, IngestReport], None]


class FolderWatcher:
    """Watches one folder. Each ``poll`` adds the files that changed since the previous poll."""

    def __init__(self, watched: WatchedFolder, tools: WatcherDeps) -> None:
        self._source = watched.folder.expanduser()
        self._folder = documents_folder(watched.block)
        self._prune = watched.prune
        self._tools = tools
        self._seen: Mapping[SourceFile, FileStamp] = {}
        self._known: dict[SourceFile, FileStamp] = {}
        self._began = False

    async def poll(self) -> float:
        """Poll once, and return how many seconds the scan of the folder took.

        Raises:
            StorageError: the folder does not exist now; its files stay in memory.
            BusError: memory cannot be reached; the next poll repeats the changes.
        """
        start = time.monotonic()
        there = await anyio.to_thread.run_sync(self._stamps)
        cost = time.monotonic() - start
        changed = [one for one, stamp in there.items() if self._is_due(one, stamp)]
        gone = [one for one in self._known if one not in there] if self._began else None
        self._seen = there
        if changed or gone or gone is None:
            await self._bring(changed, there, gone)
        return cost

    def _stamps(self) -> dict[SourceFile, FileStamp]:
        if not self._source.is_dir():
            raise StorageError(
                f"The watched folder {self._source} is not there.", hint="It is looked for again."
            )
        found: dict[SourceFile, FileStamp] = {}
        for one in scan(self._source, self._folder, self._tools.readers):
            try:
                status = one.source.stat()
            except OSError:
                continue
            found[one] = status.st_mtime_ns, status.st_size
        return found

    def _is_due(self, one: SourceFile, stamp: FileStamp) -> bool:
        if self._known.get(one) == stamp:
            return False
        return self._seen.get(one) == stamp or time.time() - stamp[0] / 1e9 > SETTLED_SECONDS

    async def _bring(
        self, changed: list[SourceFile], there: Mapping[SourceFile, FileStamp], gone: list[SourceFile] | None
    ) -> None:
        """Add files to memory and remove the files in ``gone``. If ``gone`` is None, memory is listed to find them."""
        tools = self._tools
        async with reader_pool(tools.bounds) as pool:
            bringer = Ingester(tools.bus, tools.readers, pool, actor=tools.actor)
            outcome = await bringer.ingest(changed)
            if gone is None:
                outcome.gone = await bringer.find_missing(mirror_folder(self._source, self._folder), there)
            else:
                outcome.gone = [one.target for one in gone]
            if self._prune:
                await bringer.remove(outcome.gone)
                outcome.gone, outcome.removed = [], outcome.gone
        self._known.update({one: there[one] for one in changed})
        for one in gone or ():
            del self._known[one]
        self._began = True
        if outcome.added or outcome.skipped or outcome.gone or outcome.removed:
            tools.on_report(self._source, outcome)


async def watch_folders(folders: tuple[WatchedFolder, ...], tools: WatcherDeps) -> None:
    """Watch folders until cancelled."""
    async with anyio.create_task_group() as tasks:
        for wanted in folders:
            tasks.start_soon(_keep, FolderWatcher(wanted, tools))


async def _keep(watch: FolderWatcher) -> None:
    trouble = ""
    while True:
        cost = 0.0
        try:
            cost = await watch.poll()
            trouble = ""
        except (StorageError, BusError, OSError) as error:
            if str(error) != trouble:
                log.warning("a watched folder cannot be looked at now: %s", error)
            trouble = str(error)
        await anyio.sleep(max(POLL_SECONDS, PAUSE_FACTOR * cost))


@asynccontextmanager
async def exclusive_lock(file: Path) -> AsyncIterator[None]:
    """Hold a lock, and wait while another process on this machine holds it. The system releases the lock when the
    process ends.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(handle):  # noqa: ASYNC110 - a lock does not signal that it is free
            await anyio.sleep(LOCK_SECONDS)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
