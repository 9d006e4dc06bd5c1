"""Bringing files into memory over the bus: read, compare with what memory holds, write what is new.

Only a portion is held at a time, so that memory stays bounded however many files there are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.contracts.documents.reader import Reader
from trunkline.contracts.memory.messages import (
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
from trunkline.documents.file_scan import LARGEST, Found, blob_of, is_text, opened, sha256_of, text_of
from trunkline.documents.markdown import Origin, markdown, origin
from trunkline.documents.reader_pool import Reading
from trunkline.documents.reader_registry import Readers
from trunkline.errors import UnreadableDocument
from trunkline_bus import Bus, RemoteFault

PORTION_FILES = 100
PORTION_LETTERS = 512 * 1024
FRONT_LETTERS = 2_000
"""How much of a file in memory is fetched, to see where it comes from."""

SLOTS = 4
"""How many files are held at the same time besides those that wait to be written."""

CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not brought, and why."""

    source: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that is to be written into memory."""

    source: Path
    target: str
    text: str


@dataclass(slots=True)
class Outcome:
    """What became of the files. ``added`` are those written, new or changed; ``gone`` stand in memory alone."""

    added: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    looked: int = 0
    """How many files have been looked at."""


class Bringer:
    """Brings files as ``actor``. ``note`` is called as the outcome grows."""

    def __init__(
        self,
        bus: Bus,
        readers: Readers,
        reading: Reading,
        *,
        actor: str,
        note: Callable[[Outcome], None] = lambda outcome: None,
    ) -> None:
        self._bus = bus
        self._readers = readers
        self._reading = reading
        self._actor = actor
        self._note = note
        self._slots = anyio.CapacityLimiter(SLOTS)

    async def bring(self, found: Iterable[Found]) -> Outcome:
        """Bring files; those that memory holds as they are stay untouched.

        Raises:
            BusError: memory cannot be reached; what was written until then stays.
        """
        outcome, taken = Outcome(), set[str]()
        rest = iter(found)
        while portion := list(islice(rest, PORTION_FILES)):
            await self._bring(_distinct(portion, taken, outcome), outcome)
        return outcome

    async def gone(self, base: str, found: Iterable[Found]) -> list[str]:
        """The files under a folder of memory that come from none of these files."""
        there = {one.target for one in found}
        try:
            wish = ListMemory(path=base, recursive=True)
            entries = (await self._bus.call(MEMORY_LIST, wish, timeout=CALL_SECONDS)).entries
        except RemoteFault as fault:
            if fault.code == "not_found":
                return []
            raise
        return [entry.path for entry in entries if entry.kind == "file" and entry.path not in there]

    async def remove(self, paths: Sequence[str]) -> None:
        """Take files out of memory; history keeps them."""
        for path in paths:
            wish = DeleteMemory(path=path, actor=self._actor, reason="Its source is gone")
            await self._bus.call(MEMORY_DELETE, wish, timeout=CALL_SECONDS)

    async def _bring(self, portion: list[Found], outcome: Outcome) -> None:
        held = await self._held([one.target for one in portion])
        waiting = _Waiting()

        async def take(one: Found) -> None:
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

    async def _looked_at(self, one: Found, held: MemoryFile | None, outcome: Outcome) -> Brought | None:
        """What is to be written for a file; None, and a note of why, when nothing is."""
        try:
            brought = await self._take(one, held)
            if brought is None:
                outcome.unchanged.append(one.target)
            return brought
        except UnreadableDocument as error:
            outcome.skipped.append(Skipped(one.source, error.sentence))
            return None
        finally:
            outcome.looked += 1
            self._note(outcome)

    async def _held(self, targets: list[str]) -> dict[str, MemoryFile]:
        wish = ReadManyMemory(paths=tuple(filter(is_text, targets)), letters=FRONT_LETTERS)
        try:
            files = (await self._bus.call(MEMORY_READ_MANY, wish, timeout=CALL_SECONDS)).files
        except RemoteFault:  # a name that memory refuses; writing says of which file that is
            return {}
        return {file.path: file for file in files}

    async def _take(self, one: Found, held: MemoryFile | None) -> Brought | None:
        """What is to be written for a file; None when memory holds it already. Raises UnreadableDocument."""
        if not is_text(one.target):
            raise UnreadableDocument("its name is no text in UTF-8 (convmv converts it)")
        reader = self._readers.of(one.source.name)
        if reader is not None:
            return await self._converted(one, reader, held)
        text = await anyio.to_thread.run_sync(text_of, one.source)
        if held is not None and held.hash == blob_of(text):
            return None
        return Brought(one.source, one.target, text)

    async def _converted(self, one: Found, reader: Reader, held: MemoryFile | None) -> Brought | None:
        with opened(one.source) as file:
            digest = await anyio.to_thread.run_sync(sha256_of, file)
            now = Origin(source=one.source.name, sha256=digest, reader=reader.name)
            if held is not None and origin(held.content) == now:
                return None
            document = await self._reading.read(reader, file, one.source.name)
        text = markdown(document, now)
        if len(text) > LARGEST:
            raise UnreadableDocument(f"it holds more than {LARGEST // 1024 // 1024} MB of text")
        return Brought(one.source, one.target, text)

    async def _write(self, batch: list[Brought], outcome: Outcome) -> None:
        """Write files in one commit; when memory refuses, each on its own, so that only the bad ones are left out."""
        files = {one.target: one.text for one in batch}
        noun = "file" if len(files) == 1 else "files"
        wish = WriteManyMemory(files=files, actor=self._actor, reason=f"Add {len(files)} {noun}")
        try:
            await self._bus.call(MEMORY_WRITE_MANY, wish, timeout=CALL_SECONDS)
            outcome.added += files
        except RemoteFault as fault:
            if len(batch) == 1:
                outcome.skipped.append(Skipped(batch[0].source, fault.message))
                return
            for one in batch:
                await self._write([one], outcome)


def _distinct(portion: list[Found], taken: set[str], outcome: Outcome) -> list[Found]:
    """Those whose place in memory no other file has taken."""
    chosen = []
    for one in portion:
        if one.target in taken:
            outcome.skipped.append(Skipped(one.source, f"another file takes its place, {one.target}"))
            outcome.looked += 1
            continue
        taken.add(one.target)
        chosen.append(one)
    return chosen


class _Waiting:
    """What was read and is not written yet."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self._batch: list[Brought] = []
        self._letters = 0

    def add(self, brought: Brought) -> bool:
        """Take one in; whether they are enough for a commit now."""
        self._batch.append(brought)
        self._letters += len(brought.text)
        return self._letters >= PORTION_LETTERS

    def taken(self) -> list[Brought]:
        """All of them, by name; then there are none."""
        batch, self._batch, self._letters = self._batch, [], 0
        return sorted(batch, key=lambda one: one.target)
