"""Bringing in what another system remembers: what an importer is given, and what it yields."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from trunkline.archives.manifest import Gap
from trunkline.messages.conversation import Message

LARGEST_TEXT = 100 * 1024 * 1024


class Unreadable(Exception):
    """A file of the source cannot be read as what it should be. Its text says why."""


class ImportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file for memory. ``source`` says where in the other system it was."""

    path: str
    data: bytes
    source: str


class ImportedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation for memory. ``id`` must always be the same for the same conversation, and so must those of its
    messages, because importing again adds only what is new. ``block`` None is the one that was asked for."""

    id: str
    messages: Sequence[Message]
    source: str
    title: str | None = None
    block: str | None = None
    created_at: datetime | None = None


Imported = ImportedFile | ImportedConversation | Gap


class Source:
    """A folder to import from, or an archive that was unpacked into one. Only plain files beneath it are seen: no
    links, nothing outside. What was read counts as dealt with; the rest is kept as it is."""

    def __init__(self, folder: Path, paths: Iterable[str], name: str, block: str) -> None:
        self._folder = folder
        self.paths = tuple(sorted(paths))
        self.name = name
        self.block = block
        self.used: set[str] = set()
        self._known = frozenset(self.paths)

    def has(self, path: str) -> bool:
        """Whether there is a file of that path."""
        return path in self._known

    def below(self, folder: str, suffix: str = "") -> Iterator[str]:
        """The files below a folder ("" for all), by the end of their names."""
        start = f"{folder}/" if folder else ""
        return (path for path in self.paths if path.startswith(start) and path.endswith(suffix))

    def file(self, path: str) -> Path:
        """Where a file lies, for those who must open it themselves. Raises Unreadable."""
        if path not in self._known:
            raise Unreadable(f"there is no {path}")
        self.used.add(path)
        return self._folder / path

    def data(self, path: str) -> bytes:
        """A file's bytes. Raises Unreadable."""
        file = self.file(path)
        try:
            if file.stat().st_size > LARGEST_TEXT:
                raise Unreadable(f"{path} is larger than {LARGEST_TEXT // 1024 // 1024} MB")
            return file.read_bytes()
        except OSError as error:
            raise Unreadable(f"{path}: {(error.strerror or 'cannot be read').lower()}") from error

    def text(self, path: str) -> str:
        """A file's text. Raises Unreadable."""
        try:
            return self.data(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Unreadable(f"{path} is no text in UTF-8") from None

    def json(self, path: str) -> Any:
        """A file's JSON. Raises Unreadable."""
        try:
            return json.loads(self.text(path))
        except (ValueError, RecursionError):
            raise Unreadable(f"{path} is no JSON") from None

    def lines(self, path: str) -> Iterator[Any]:
        """The JSON of each line that has some; others are passed over. Raises Unreadable."""
        for line in self.text(path).splitlines():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue

    def changed(self, path: str) -> datetime:
        """When a file was changed last."""
        return datetime.fromtimestamp(self.file(path).stat().st_mtime, UTC)


class Importer(ABC):
    """Knows how one other system keeps its memory."""

    name: str
    """Small letters, digits and dashes; what ``--from`` names and ``imported/<name>/`` is called after."""

    title: str
    """The system's own name."""

    @abstractmethod
    def recognises(self, source: Source) -> bool:
        """Whether this is that system's. Looks at little; must not be wrong about others' folders."""

    @abstractmethod
    def read(self, source: Source) -> Iterator[Imported]:
        """What there is. Passwords and keys are never yielded; that they were left behind is a gap. May raise
        Unreadable, which ends the reading of that part alone when it is raised by ``source``."""
