"""Documents: what a file says, in parts that can be cited, what makes one of a file (``Reader``), and what tools are
given of all that (``Documents``)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import BinaryIO, Protocol

import msgspec

from trunkline.contracts.documents.messages import CollectedDocument, Excerpt
from trunkline.errors import ToolError


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document that stands in one place.

    ``text`` is Markdown. ``heading`` are the headings it stands under, the outermost first. ``page`` is the page or
    slide that it begins on, counted from 1; None where there are no pages.
    """

    text: str
    heading: tuple[str, ...] = ()
    page: int | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a file. ``title`` is the file's own, if it has one; ``pages`` is how many there are, None without."""

    sections: tuple[Section, ...]
    title: str = ""
    pages: int | None = None


class Reader(ABC):
    """Reads files of a format. Synchronous: it runs in a process of its own, with bounds on memory and time, and may
    hang or crash there without harm.

    An instance travels to that process by ``pickle``: its class stands in a module, and it holds settings only.
    """

    name: str
    """Lower-case letters, digits, ``-`` and ``_``; it is noted in what is read."""

    suffixes: tuple[str, ...]
    """The ends of names of such files, lower-case with the dot: ``(".html", ".htm")``."""

    def unavailable(self) -> str | None:
        """Why nothing can be read on this machine and what to install; None when all is there."""
        return None

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Document:
        """Read an open file that can be sought in; ``name`` is its name without folders.

        Raises:
            UnreadableDocument: it cannot be read; the text says why. Any other exception says that it is broken.
        """


class DocumentText(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the workspace as text: as it is, or as the Markdown that a reader made of it.

    ``name`` is what it is called where it is kept; ``source`` the file's own name. ``pages`` is None without.
    """

    name: str
    source: str
    text: str
    title: str = ""
    pages: int | None = None


class Documents(Protocol):
    """The documents of a conversation and its block, as tools are given them. Raises ToolError with a text for the
    model."""

    async def read(self, path: str) -> DocumentText:
        """A file of the workspace, read apart by whatever reader there is for it."""
        ...

    async def convert(self, name: str, data: bytes, reader: Reader | None = None) -> Document:
        """Convert a file that is not in the workspace, by the reader that its name calls for or this one. It is
        read apart, like all that strangers wrote.
        """
        ...

    async def collect(self, name: str, text: str) -> None:
        """Keep a text with the conversation: found by ``search`` and gone with the conversation, never in memory."""
        ...

    async def collected(self) -> Sequence[CollectedDocument]:
        """Return the documents that are kept with the conversation."""
        ...

    async def search(self, query: str, *, limit: int = 8) -> Sequence[Excerpt]:
        """The best places in the conversation's documents, the block's, and those for all blocks."""
        ...

    async def clear(self) -> int:
        """Throw away what is kept with the conversation; how many documents that were."""
        ...


class NoDocuments:
    """There are none here: on other hosts, in processes apart, and in tests that give none."""

    async def read(self, path: str) -> DocumentText:
        """Refuse."""
        raise _nowhere()

    async def convert(self, name: str, data: bytes, reader: Reader | None = None) -> Document:
        """Refuse."""
        raise _nowhere()

    async def collect(self, name: str, text: str) -> None:
        """Refuse."""
        raise _nowhere()

    async def collected(self) -> Sequence[CollectedDocument]:
        """Refuse."""
        raise _nowhere()

    async def search(self, query: str, *, limit: int = 8) -> Sequence[Excerpt]:
        """Refuse."""
        raise _nowhere()

    async def clear(self) -> int:
        """Refuse."""
        raise _nowhere()


def _nowhere() -> ToolError:
    return ToolError("Documents cannot be reached from here.", kind="unsupported")
