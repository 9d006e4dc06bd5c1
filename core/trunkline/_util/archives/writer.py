"""Writing an archive, a piece at a time. Any size; never whole in this process."""

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
    """Adds members to a tar file and writes down their sums; ``close`` adds those as the last member.

    ``time`` (seconds since 1970) is what all members are said to be of, so that the same content is the same bytes.
    """

    def __init__(self, tar: tarfile.TarFile, time: int) -> None:
        self._tar = tar
        self._time = time
        self._sums: list[str] = []

    def add(self, name: str, data: bytes, *, executable: bool = False) -> None:
        """A member of these bytes."""
        self.add_stream(name, io.BytesIO(data), len(data), executable=executable)

    def add_file(self, name: str, file: Path, *, executable: bool = False) -> None:
        """A member with a file's bytes. Raises OSError."""
        with file.open("rb") as source:
            self.add_stream(name, source, os.fstat(source.fileno()).st_size, executable=executable)

    def add_stream(self, name: str, source: BinaryIO, size: int, *, executable: bool = False) -> None:
        """A member of the next ``size`` bytes of a file."""
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, self._time, 0o755 if executable else 0o644
        summed = _Summed(source)
        self._tar.addfile(info, summed)  # type: ignore[arg-type]
        self._sums.append(f"{summed.digest.hexdigest()}  {name}\n")

    def add_folder(self, name: str) -> None:
        """An empty folder."""
        info = tarfile.TarInfo(name)
        info.type, info.mtime, info.mode = tarfile.DIRTYPE, self._time, 0o755
        self._tar.addfile(info)

    def close(self) -> None:
        """Add the sums. Nothing may be added after them."""
        data = "".join(self._sums).encode()
        info = tarfile.TarInfo(SUMS)
        info.size, info.mtime, info.mode = len(data), self._time, 0o644
        self._tar.addfile(info, io.BytesIO(data))


class _Summed:
    """Reads a file and sums what was read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self.digest.update(data)
        return data


@contextmanager
def write_archive(target: Path, time: int) -> Iterator[ArchiveWriter]:
    """Write an archive to ``target``, which appears when it is complete, readable by its owner only. Raises OSError."""
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
