"""Unpacks untrusted archives of other systems (zip, and tar, compressed or not).

Only regular files are unpacked. No name may lead outside of the folder. The number of files, the size, and the size
relative to the archive are limited.
"""

import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from trunkline._util.private_folders import make_private
from trunkline.errors import TrunklineError

MOST_FILES = 200_000
MOST_BYTES = 16 * 1024 * 1024 * 1024
MOST_TIMES = 200
"""The maximum size of the content relative to the archive, beyond the first ``FREE_BYTES``."""

FREE_BYTES = 64 * 1024 * 1024
DEEPEST = 60


def extract_archive(archive: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder.

    Raises:
        TrunklineError: the format is unknown, or the archive is damaged or not safe. Delete the folder then.
        OSError: the archive cannot be read or unpacked.
    """
    room = _SizeLimit(archive)
    try:
        for name, opened in _members(archive):
            with opened as source:
                _write(source, _place(folder, name, archive), room)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        NotImplementedError,
        ValueError,
    ) as error:
        raise _bad(archive, "it is damaged") from error
    except RuntimeError as error:  # zipfile raises this for an encrypted archive
        raise _bad(archive, "it is locked with a password") from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _bad(archive, "it holds names that this file system cannot store together") from error


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        yield from _zipped(archive)
    elif tarfile.is_tarfile(archive):
        yield from _tarred(archive)
    elif archive.suffix in (".json", ".jsonl", ".db", ".sqlite", ".sqlite3", ".md"):
        yield archive.name, archive.open("rb")
    else:
        raise _bad(archive, "the format of the archive is unknown")


def _zipped(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            kind = info.external_attr >> 28
            if info.is_dir():
                continue
            if kind not in (0, 8):  # neither unspecified nor a regular file: a link or a device
                raise _bad(archive, f"it holds {info.filename[:120]!r}, which is not a regular file")
            yield info.filename, zipped.open(info)


def _tarred(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isdir():
                continue
            source = tar.extractfile(member) if member.isreg() and not member.issparse() else None
            if source is None:
                raise _bad(archive, f"it holds {member.name[:120]!r}, which is not a regular file")
            yield member.name, source


class _SizeLimit:
    """The number of bytes and files that an archive may still unpack."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._bytes = min(MOST_BYTES, FREE_BYTES + MOST_TIMES * archive.stat().st_size)
        self._files = MOST_FILES

    def count_bytes(self, size: int) -> None:
        """Count unpacked bytes. Raises TrunklineError if the limit is exceeded."""
        self._bytes -= size
        if self._bytes < 0:
            raise _bad(self._archive, "it unpacks to far more than it should")

    def count_file(self) -> None:
        """Count a file. Raises TrunklineError if the limit is exceeded."""
        self._files -= 1
        if self._files < 0:
            raise _bad(self._archive, f"it holds more than {MOST_FILES} files")


def _place(folder: Path, name: str, archive: Path) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    bad = path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0]
    if bad or len(path.parts) > DEEPEST or any(ord(letter) < 32 for letter in name):
        raise _bad(archive, f"it holds {name[:120]!r}, an unsafe path")
    return folder / path


def _write(source: IO[bytes], target: Path, room: _SizeLimit) -> None:
    room.count_file()
    make_private(target.parent)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while piece := source.read(1024 * 1024):
            room.count_bytes(len(piece))
            file.write(piece)


def _bad(archive: Path, why: str) -> TrunklineError:
    return TrunklineError(f"{archive} cannot be used: {why}.", hint="Nothing was changed.")
