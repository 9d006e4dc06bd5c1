"""Documents: the text of a file in citable sections, the reader of a format (``Reader``), and the client for tools
(``Documents``).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import BinaryIO, Protocol

import msgspec

from trunkline.contracts.documents.messages import CollectedDocument, Excerpt
from trunkline.errors import ToolError


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A section of a document.

    ``text`` is Markdown. ``heading`` are the headings above the section, the outermost first. ``page`` is the page or
    slide on which the section begins, counted from 1; None if the format has no pages.
    """

    text: str
    heading: tuple[str, ...] = ()
    page: int | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a file. ``title`` is the file's own title, if any; ``pages`` is the number of pages, None if the
    format has none.
    """

    sections: tuple[Section, ...]
    title: str = ""
    pages: int | None = None


class Reader(ABC):
    """Reads files of a format. A reader is synchronous: it runs in a separate process with limits on memory and time,
    and may hang or crash there without harm.

    An instance is sent to that process by ``pickle``: its class must be at module level, and it may hold settings only.

    Guarantees: the file was opened by the platform, and the reader needs no path. The process reads one file at a time.
    It cannot write files, and on Linux it has no network.

    Not guaranteed: that the process is a new one. It may have read other files before.
    """

    name: str
    """Lower-case letters, digits, ``-`` and ``_``. The name is recorded in the converted text."""

    suffixes: tuple[str, ...]
    """The suffixes of such files' names, lower-case with the dot: ``(".html", ".htm")``."""

    def unavailable(self) -> str | None:
        """Return why the reader cannot work on this machine and what to install; None if it can. Called in the worker,
        before each file. Raises nothing. An exception makes the call of the tool fail.
        """
        return None

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Document:
        """Read an open, seekable file. ``name`` is its name without folders. A document without text is refused.

        Raises:
            UnreadableDocument: the file cannot be read; the message says why. For any other exception the caller is
                told that the file is broken.
        """


class DocumentText(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the workspace as text: unchanged, or as the Markdown that a reader produced.

    ``name`` is its name in the collection, ``source`` the file's own name. ``pages`` is None if the format has no
    pages.
    """

    name: str
    source: str
    text: str
    title: str = ""
    pages: int | None = None


class Documents(Protocol):
    """The documents of a conversation and its block, as tools use them.

    Guarantees: every file is read in a separate process, as all untrusted files are. A document that ``collect`` has
    stored is found by each later ``collected`` and ``search``, until it is removed. It is deleted with the conversation
    and never becomes part of memory.

    Not guaranteed: that a stored document is kept until the conversation is deleted, because unused ones are removed
    after ``[documents] conversation_days``. After ``unavailable`` it is unknown whether a document was stored or
    deleted.
    """

    async def read(self, path: str) -> DocumentText:
        """Read a file of the workspace with the reader for its format.

        Raises:
            ToolError: ``unsupported``: the file cannot be read as a document. ``permission_denied``: the path is not
                permitted. ``not_found``, or another kind for an error of the system.
            OSError: the workspace does not exist.
        """
        ...

    async def convert(self, name: str, data: bytes, reader: Reader | None = None) -> Document:
        """Convert a file that is not in the workspace, with ``reader`` or the reader for its name.

        Raises:
            ToolError: ``unsupported``: there is no such reader, or the file cannot be read.
        """
        ...

    async def collect(self, name: str, text: str) -> None:
        """Store a text with the conversation, under ``name``. A text of the same name is replaced.

        Raises:
            ToolError: ``unavailable``: there is no room, or memory does not answer. ``invalid_arguments``: the name is
                not valid.
        """
        ...

    async def collected(self) -> Sequence[CollectedDocument]:
        """Return the documents stored with the conversation, sorted by name. Raises ToolError ``unavailable`` if memory
        does not answer.
        """
        ...

    async def search(self, query: str, *, limit: int = 8) -> Sequence[Excerpt]:
        """Return at most ``limit`` passages in the documents of the conversation, of the block, and of all blocks, best
        first within each of the three. Raises ToolError ``unavailable`` if memory does not answer.
        """
        ...

    async def clear(self) -> int:
        """Delete the documents stored with the conversation, and return their number. Raises ToolError ``unavailable``
        if memory does not answer.
        """
        ...


class NoDocuments:
    """Documents are not available: on other hosts, in isolated processes, and in tests without them."""

    async def read(self, path: str) -> DocumentText:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise _nowhere()

    async def convert(self, name: str, data: bytes, reader: Reader | None = None) -> Document:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise _nowhere()

    async def collect(self, name: str, text: str) -> None:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise _nowhere()

    async def collected(self) -> Sequence[CollectedDocument]:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise _nowhere()

    async def search(self, query: str, *, limit: int = 8) -> Sequence[Excerpt]:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise _nowhere()

    async def clear(self) -> int:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise _nowhere()


def _nowhere() -> ToolError:
    return ToolError("Documents cannot be reached from here.", kind="unsupported")
