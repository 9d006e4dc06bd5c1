"""Bringing in what another system remembers: what an importer is given, and what it yields."""

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


Imported = ImportedFile | ImportedConversation | ImportGap


class Source:
    """A folder to import from, or an archive that was unpacked into one. Only plain files beneath it are seen: no
    links, nothing outside. What was read counts as dealt with; the rest is kept as it is. Nothing raises because of
    what is in a file: ``troubles`` tells."""

    def __init__(self, folder: Path, paths: Iterable[str], name: str, block: str) -> None:
        self._folder = folder
        self.paths = tuple(sorted(paths))
        self.name = name
        self.block = block
        self.used: set[str] = set()
        self.troubles: list[ImportGap] = []
        self._known = frozenset(self.paths)

    def has(self, path: str) -> bool:
        """Report whether there is a file of that path."""
        return path in self._known

    def below(self, folder: str, suffix: str = "") -> Iterator[str]:
        """The files below a folder ("" for all), by the end of their names."""
        start = f"{folder}/" if folder else ""
        return (path for path in self.paths if path.startswith(start) and path.endswith(suffix))

    def file(self, path: str) -> Path:
        """Where a file lies, for those who must open it themselves. Raises KeyError for one that is not there."""
        if path not in self._known:
            raise KeyError(path)
        self.used.add(path)
        return self._folder / path

    def trouble(self, path: str, why: str) -> None:
        """Note that a file is not what it should be; the person is told."""
        self.troubles.append(ImportGap(what=path, why=why))

    def data(self, path: str) -> bytes:
        """A file's bytes; none, and trouble, when it cannot be read or is too large."""
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
        """A file's text; empty, and trouble, when it is none."""
        try:
            return self.data(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.trouble(path, "it is no text in UTF-8")
            return ""

    def json(self, path: str) -> Any:
        """A file's JSON; None, and trouble, when it is none."""
        try:
            return json.loads(self.text(path))
        except (ValueError, RecursionError):
            self.trouble(path, "it is no JSON that can be read")
            return None

    def lines(self, path: str) -> Iterator[Any]:
        """The JSON of each line that has some; others are passed over, and told together."""
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
        """Report whether this is that system's. Looks at little; must not be wrong about others' folders."""

    @abstractmethod
    def read(self, source: Source) -> Iterator[Imported]:
        """Yield all that the source holds. Passwords and keys are never yielded; that they were left behind is a
        gap.
        """
