"""Adds files to memory over the bus: reads them, compares them with memory, and writes the new ones.

Only one batch of files is in the process's memory at a time, however many files there are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.contracts.documents.reader import Reader
from trunkline.contracts.memory.files import (
    DeleteMemory,
    ListMemory,
    MemoryFile,
    ReadManyMemory,
    WriteManyMemory,
)
from trunkline.contracts.memory.subjects import (
    MEMORY_DELETE,
    MEMORY_LIST,
    MEMORY_READ_MANY,
    MEMORY_WRITE_MANY,
)
from trunkline.documents.file_scan import (
    MAX_TEXT,
    SourceFile,
    git_blob_hash,
    is_text,
    open_regular,
    read_text,
    sha256_of,
)
from trunkline.documents.markdown import DocumentOrigin, parse_origin, to_markdown
from trunkline.documents.reader_pool import ReaderPool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.errors import UnreadableDocument
from trunkline_bus import Bus, RemoteFault

BATCH_FILES = 100
BATCH_CHARACTERS = 512 * 1024
FRONT_MATTER_CHARACTERS = 2_000
"""The number of characters that are read of a file in memory to find its origin."""

SLOTS = 4
"""The number of files that are read at the same time, besides the files that wait to be written."""

MEMORY_TIMEOUT = 60.0
"""Seconds to wait for a reply of memory."""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not added, and the reason. ``code`` is that of memory's refusal, "" if the file was not read."""

    source: Path
    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """A file to write to memory."""

    source: Path
    target: str
    text: str


@dataclass(slots=True)
class IngestReport:
    """The result of adding files, by path. ``added`` are the written files, new or changed; ``gone`` are files in
    memory whose source no longer exists.
    """

    added: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    looked: int = 0
    """The number of files examined."""


class Ingester:
    """Adds files to memory as ``actor``. ``note`` is called with the report after each file. Unless ``replace`` is set,
    a file that memory has with another text is skipped with the code ``write_conflict``.
    """

    def __init__(
        self,
        bus: Bus,
        readers: ReaderRegistry,
        reading: ReaderPool,
        *,
        actor: str,
        note: Callable[[IngestReport], None] = lambda outcome: None,
        replace: bool = True,
    ) -> None:
        self._bus = bus
        self._readers = readers
        self._reading = reading
        self._actor = actor
        self._note = note
        self._replace = replace
        self._slots = anyio.CapacityLimiter(SLOTS)

    async def ingest(self, files: Iterable[SourceFile]) -> IngestReport:
        """Add files to memory. Files that memory has already are not written.

        Raises:
            BusError: memory cannot be reached; the files written before stay in memory.
        """
        outcome, taken = IngestReport(), set[str]()
        rest = iter(files)
        while portion := list(islice(rest, BATCH_FILES)):
            await self._bring(_distinct(portion, taken, outcome), outcome)
        return outcome

    async def find_missing(self, base: str, files: Iterable[SourceFile]) -> list[str]:
        """Return the files under a folder of memory that have no source among ``files``."""
        there = {one.target for one in files}
        try:
            request = ListMemory(path=base, recursive=True)
            entries = (await self._bus.call(MEMORY_LIST, request, timeout=MEMORY_TIMEOUT)).entries
        except RemoteFault as fault:
            if fault.code == "not_found":
                return []
            raise
        return [entry.path for entry in entries if entry.kind == "file" and entry.path not in there]

    async def remove(self, paths: Sequence[str]) -> None:
        """Delete files from memory. History keeps the content."""
        for path in paths:
            request = DeleteMemory(path=path, actor=self._actor, reason="Its source no longer exists")
            await self._bus.call(MEMORY_DELETE, request, timeout=MEMORY_TIMEOUT)

    async def _bring(self, portion: list[SourceFile], outcome: IngestReport) -> None:
        held = await self._held([one.target for one in portion])
        waiting = _Waiting()

        async def take(one: SourceFile) -> None:
            async with self._slots:
                brought = await self._looked_at(one, held.get(one.target), outcome)
                if brought is not None:
                    async with waiting.lock:
                        if waiting.add(brought):
                            await self._write(waiting.taken(), outcome)

        async with anyio.create_task_group() as tasks:
            for one in portion:
                tasks.start_soon(take, one)
        if batch := waiting.taken():
            await self._write(batch, outcome)

    async def _looked_at(
        self, one: SourceFile, stored: MemoryFile | None, outcome: IngestReport
    ) -> IngestedFile | None:
        """Read a file and return the text to write; None if there is nothing to write. ``outcome`` then has the
        reason.
        """
        try:
            brought = await self._take(one, stored)
            if brought is None:
                outcome.unchanged.append(one.target)
            return brought
        except UnreadableDocument as error:
            outcome.skipped.append(SkippedFile(one.source, error.sentence))
            return None
        finally:
            outcome.looked += 1
            self._note(outcome)

    async def _held(self, targets: list[str]) -> dict[str, MemoryFile]:
        request = ReadManyMemory(
            paths=tuple(filter(is_text, targets)), max_characters=FRONT_MATTER_CHARACTERS
        )
        try:
            files = (await self._bus.call(MEMORY_READ_MANY, request, timeout=MEMORY_TIMEOUT)).files
        except RemoteFault:  # memory refuses one of the names; the write then reports which one
            return {}
        return {file.path: file for file in files}

    async def _take(self, one: SourceFile, stored: MemoryFile | None) -> IngestedFile | None:
        """Read one file and return the text to write; None when memory already has it. Raises UnreadableDocument."""
        if not is_text(one.target):
            raise UnreadableDocument("its name is not valid UTF-8 (convmv converts it)")
        reader = self._readers.reader_for(one.source.name)
        if reader is not None:
            return await self._converted(one, reader, stored)
        text = await anyio.to_thread.run_sync(read_text, one.source)
        if stored is not None and stored.hash == git_blob_hash(text):
            return None
        return IngestedFile(one.source, one.target, text)

    async def _converted(
        self, one: SourceFile, reader: Reader, stored: MemoryFile | None
    ) -> IngestedFile | None:
        with open_regular(one.source) as file:
            digest = await anyio.to_thread.run_sync(sha256_of, file)
            now = DocumentOrigin(source=one.source.name, sha256=digest, reader=reader.name)
            if stored is not None and parse_origin(stored.content) == now:
                return None
            document = await self._reading.read(reader, file, one.source.name)
        text = to_markdown(document, now)
        if len(text) > MAX_TEXT:
            raise UnreadableDocument(f"it holds more than {MAX_TEXT // 1024 // 1024} MB of text")
        return IngestedFile(one.source, one.target, text)

    async def _write(self, batch: list[IngestedFile], outcome: IngestReport) -> None:
        """Write files in one commit. If memory refuses, write each file separately, so that only the refused files are
        skipped.
        """
        files = {one.target: one.text for one in batch}
        noun = "file" if len(files) == 1 else "files"
        expected = {} if self._replace else dict.fromkeys(files, "")
        request = WriteManyMemory(
            files=files, actor=self._actor, reason=f"Add {len(files)} {noun}", expected=expected
        )
        try:
            await self._bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)
            outcome.added += files
        except RemoteFault as fault:
            if len(batch) == 1:
                outcome.skipped.append(SkippedFile(batch[0].source, fault.message, fault.code))
                return
            for one in batch:
                await self._write([one], outcome)


def _distinct(portion: list[SourceFile], taken: set[str], outcome: IngestReport) -> list[SourceFile]:
    """Return the files whose path in memory no other file has, and record the others as skipped."""
    chosen = []
    for one in portion:
        if one.target in taken:
            outcome.skipped.append(SkippedFile(one.source, f"another file takes its place, {one.target}"))
            outcome.looked += 1
            continue
        taken.add(one.target)
        chosen.append(one)
    return chosen


class _Waiting:
    """Texts that have been read and wait to be written."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self._batch: list[IngestedFile] = []
        self._characters = 0

    def add(self, brought: IngestedFile) -> bool:
        """Add a text. Return True if there are enough for a commit."""
        self._batch.append(brought)
        self._characters += len(brought.text)
        return self._characters >= BATCH_CHARACTERS

    def taken(self) -> list[IngestedFile]:
        """Return all texts, sorted by path, and remove them from the batch."""
        batch, self._batch, self._characters = self._batch, [], 0
        return sorted(batch, key=lambda one: one.target)
