"""Find the files on disk to add to memory, and their paths in memory. This module reads the disk only, not memory.

Hidden files and links are skipped. Text in UTF-8 is added unchanged; a file that a reader converts is added as
Markdown.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trunkline.contracts.blocks.paths import block_folder
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.errors import StorageError, UnreadableDocument

MAX_TEXT = 4 * 1024 * 1024
"""The maximum size of a text file in memory, in bytes."""

MAX_SOURCE_BYTES = 512 * 1024 * 1024
"""The maximum size of a file that a reader converts, in bytes."""

CONVERTED_SUFFIX = ".md"
"""The suffix that is appended to the name of a converted file in memory."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file on disk, and the path of its text in memory."""

    source: Path
    target: str


def documents_folder(block: str | None) -> str:
    """Return the folder in memory for documents: of one block, or of all blocks for None."""
    return "documents" if block is None else f"{block_folder(block)}/documents"


def mirror_folder(source: Path, folder: str) -> str:
    """Return the folder in memory that mirrors a folder on disk."""
    name = source.resolve().name
    return f"{folder}/{name}" if name else folder


def scan(source: Path, folder: str, readers: ReaderRegistry) -> Iterator[SourceFile]:
    """Yield the files of ``source``, a file or a folder, with their paths in memory, sorted. Hidden files and links are
    skipped.

    Raises:
        StorageError: ``source`` does not exist.
    """
    if not source.exists():
        raise StorageError(f"There is no file or folder {source}.", hint="Check the spelling.")
    if source.is_file():
        yield SourceFile(source, _target(f"{folder}/{source.name}", readers))
        return
    base = mirror_folder(source, folder)
    for here, folders, names in os.walk(source):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(here) / name
            if not name.startswith(".") and not file.is_symlink() and file.is_file():
                yield SourceFile(file, _target(f"{base}/{file.relative_to(source).as_posix()}", readers))


def _target(path: str, readers: ReaderRegistry) -> str:
    return path if readers.reader_for(path) is None else path + CONVERTED_SUFFIX


def is_text(name: str) -> bool:
    """Report whether a name is valid text. A file's name may consist of any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def display_path(path: Path) -> str:
    """Return a path as one line of text, whatever bytes its names consist of."""
    text = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


@contextmanager
def open_regular(source: Path) -> Iterator[BinaryIO]:
    """Open a regular file. A link is never followed, even if it replaced the file after the scan. Raises
    UnreadableDocument.
    """
    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:  # noqa: PTH123 it is a handle
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableDocument("it is not a regular file")
            yield file
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableDocument("it is a symbolic link; name its target") from error
        raise UnreadableDocument((error.strerror or "it cannot be read").lower()) from error


def read_text(source: Path) -> str:
    """Return the content of a text file. Raises UnreadableDocument."""
    with open_regular(source) as file:
        return decode_text(file.read(MAX_TEXT + 1))


def decode_text(data: bytes) -> str:
    """Return the text of bytes. Raises UnreadableDocument."""
    if len(data) > MAX_TEXT:
        raise UnreadableDocument(f"it is larger than {MAX_TEXT // 1024 // 1024} MB")
    if b"\0" in data:
        raise UnreadableDocument("it is binary, and no reader is there for it")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableDocument("it is not text in UTF-8 (iconv converts it)") from None


def sha256_of(file: BinaryIO) -> str:
    """Return the hash of a file, and seek the file to its beginning. Raises UnreadableDocument."""
    if file.seek(0, os.SEEK_END) > MAX_SOURCE_BYTES:
        raise UnreadableDocument(f"it is larger than {MAX_SOURCE_BYTES // 1024 // 1024} MB")
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    file.seek(0)
    return digest.hexdigest()


def git_blob_hash(text: str) -> str:
    """Return the hash that memory, like git, has for a file with this text."""
    data = text.encode("utf-8")
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
