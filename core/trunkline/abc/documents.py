"""Documents: what a file says, in parts that can be cited, and what makes one of a file (``Reader``)."""

from abc import ABC, abstractmethod
from typing import BinaryIO

import msgspec


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document that stands in one place.

    ``text`` is Markdown. ``heading`` are the headings it stands under, the outermost first. ``page`` is the page or
    slide that it begins on, counted from 1; None where there are no pages.
    """

    text: str
    heading: tuple[str, ...] = ()
    page: int | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says. ``title`` is the file's own, if it has one; ``pages`` is how many there are, None without."""

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
