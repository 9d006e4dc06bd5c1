"""The interface of an importer of another system's memory: the source that it reads and the items that it yields."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from trunkline._util.archives.manifest import ImportGap
from trunkline.contracts.conversations.messages import Message

LARGEST_TEXT = 100 * 1024 * 1024


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file to add to memory. ``source`` is its place in the other system."""

    path: str
    data: bytes
    source: str


class ImportedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to add to memory.

    ``id`` and the ids of the messages must be the same each time the conversation is imported, because a repeated
    import adds only what is new. ``block`` None is the block that the import was requested for.
    """

    id: str
    messages: Sequence[Message]
    source: str
    title: str | None = None
    block: str | None = None
    created_at: datetime | None = None


Imported = ImportedFile | ImportedConversation | ImportGap


class Source:
    """A folder to import from, or the folder of an unpacked archive.

    Guarantees: only regular files below the folder are visible; links and files outside are not. A file that the
    importer reads counts as imported; the other files are kept unchanged.

    Not guaranteed: that a file has the expected content. No method raises because of a file's content: ``troubles``
    lists the problems.
    """

    def __init__(self, folder: Path, paths: Iterable[str], name: str, block: str) -> None:
        self._folder = folder
        self.paths = tuple(sorted(paths))
        self.name = name
        self.block = block
        self.used: set[str] = set()
        self.troubles: list[ImportGap] = []
        self._known = frozenset(self.paths)

    def has(self, path: str) -> bool:
        """Report whether a file exists at the path. Raises nothing."""
        return path in self._known

    def below(self, folder: str, suffix: str = "") -> Iterator[str]:
        """Return the files below a folder ("" for all) whose names end in ``suffix``, sorted. Raises nothing."""
        start = f"{folder}/" if folder else ""
        return (path for path in self.paths if path.startswith(start) and path.endswith(suffix))

    def file(self, path: str) -> Path:
        """Return the path on disk of a file, for importers that must open it themselves. Raises KeyError if there is no
        such file.
        """
        if path not in self._known:
            raise KeyError(path)
        self.used.add(path)
        return self._folder / path

    def trouble(self, path: str, why: str) -> None:
        """Record that a file is not as expected. The import reports the problem to the person. Raises nothing."""
        self.troubles.append(ImportGap(what=path, why=why))

    def data(self, path: str) -> bytes:
        """Return a file's bytes. If the file cannot be read or has more than 100 MiB, record the problem and return no
        bytes. Raises KeyError if there is no such file.
        """
        file = self.file(path)
        try:
            if file.stat().st_size > LARGEST_TEXT:
                self.trouble(path, f"it is larger than {LARGEST_TEXT // 1024 // 1024} MB")
                return b""
            return file.read_bytes()
        except OSError as error:
            self.trouble(path, (error.strerror or "it cannot be read").lower())
            return b""

    def text(self, path: str) -> str:
        """Return a file's text. If the file is not text, record the problem and return "". Raises KeyError if there is
        no such file.
        """
        try:
            return self.data(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.trouble(path, "it is no text in UTF-8")
            return ""

    def json(self, path: str) -> Any:
        """Return the value of a JSON file. If the file is not JSON, record the problem and return None. Raises KeyError
        if there is no such file.
        """
        try:
            return json.loads(self.text(path))
        except (ValueError, RecursionError):
            self.trouble(path, "it is no JSON that can be read")
            return None

    def lines(self, path: str) -> Iterator[Any]:
        """Yield the JSON value of each line that has one. Skip other lines and record them as one problem. Raises
        KeyError if there is no such file.
        """
        bad = 0
        for line in self.text(path).splitlines():
            try:
                if line.strip():
                    yield json.loads(line)
            except (ValueError, RecursionError):
                bad += 1
        if bad:
            self.trouble(path, f"{bad} of its lines are no JSON that can be read")

    def changed(self, path: str) -> datetime:
        """Return when a file was last changed, in UTC. Raises KeyError if there is no such file, and OSError if it has
        been removed meanwhile.
        """
        return datetime.fromtimestamp(self.file(path).stat().st_mtime, UTC)


class Importer(ABC):
    """Reads the memory of one other system. An importer never runs in the memory worker, but in the process that asks
    for the import.

    Guarantees: memory is changed only after ``read`` has yielded its last item.

    Not guaranteed: that every item is imported. An item whose path is not allowed or is used twice, and a file whose
    name says that it holds keys, is left out; the import reports it.
    """

    name: str
    """The name in ``--from`` and of the folder ``imported/<name>/``: lower-case letters, digits and dashes."""

    title: str
    """The name of the system, for people."""

    @abstractmethod
    def recognises(self, source: Source) -> bool:
        """Report whether the source is a memory of this system. Must read few files, and must not accept a folder of
        another system. Raises nothing. An exception ends the import.
        """

    @abstractmethod
    def read(self, source: Source) -> Iterator[Imported]:
        """Yield all items of the source. Never yield passwords or keys; for these, yield a gap that says that they were
        left out.

        Raises:
            Exception: the import ends, and memory is not changed.
        """
