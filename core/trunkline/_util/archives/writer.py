"""Writes an archive in pieces, so its size is not limited by main memory."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trunkline._util.archives.manifest import SUMS


class ArchiveWriter:
    """Adds members to a tar file and records their checksums. ``close`` adds the checksums as the last member.

    ``time`` (seconds since 1970) is the modification time of all members.

    Guarantees: equal content gives equal bytes.

    Not guaranteed: that a name is valid or added only once.
    """

    def __init__(self, tar: tarfile.TarFile, time: int) -> None:
        self._tar = tar
        self._time = time
        self._sums: list[str] = []

    def add(self, name: str, data: bytes, *, executable: bool = False) -> None:
        """Add a member with these bytes. Raises OSError if the archive cannot be written."""
        self.add_stream(name, io.BytesIO(data), len(data), executable=executable)

    def add_file(self, name: str, file: Path, *, executable: bool = False) -> None:
        """Add a member with a file's bytes. Raises OSError if the file cannot be read, or the archive not written."""
        with file.open("rb") as source:
            self.add_stream(name, source, os.fstat(source.fileno()).st_size, executable=executable)

    def add_stream(self, name: str, source: BinaryIO, size: int, *, executable: bool = False) -> None:
        """Add a member with the next ``size`` bytes of a file. Raises OSError if the source has fewer bytes or the
        archive cannot be written.
        """
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, self._time, 0o755 if executable else 0o644
        summed = _Summed(source)
        self._tar.addfile(info, summed)  # type: ignore[arg-type]
        self._sums.append(f"{summed.digest.hexdigest()}  {name}\n")

    def add_folder(self, name: str) -> None:
        """Add an empty folder. Raises OSError if the archive cannot be written."""
        info = tarfile.TarInfo(name)
        info.type, info.mtime, info.mode = tarfile.DIRTYPE, self._time, 0o755
        self._tar.addfile(info)

    def close(self) -> None:
        """Add the checksums. Nothing may be added after them. Raises OSError if the archive cannot be written."""
        data = "".join(self._sums).encode()
        info = tarfile.TarInfo(SUMS)
        info.size, info.mtime, info.mode = len(data), self._time, 0o644
        self._tar.addfile(info, io.BytesIO(data))


class _Summed:
    """Reads a file and computes its checksum."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self.digest.update(data)
        return data


@contextmanager
def write_archive(target: Path, time: int) -> Iterator[ArchiveWriter]:
    """Write an archive to ``target``. The file appears when it is complete, and only its owner can read it. Raises
    OSError.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                writer = ArchiveWriter(tar, time)
                yield writer
                writer.close()
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
