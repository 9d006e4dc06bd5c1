"""Reads archives of any origin. It writes only below the folder that an archive is unpacked into.

An archive is refused, before any of it is used, in these cases: names that leave the folder, links, devices, sparse
files, duplicates, unknown members, wrong checksums, a missing end, or more data than the disk has room for.
"""

import errno
import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from trunkline._util.archives.manifest import DERIVED, MANIFEST, MEMORY, README, SCHEMA, SUMS, ArchiveManifest
from trunkline._util.private_folders import make_private
from trunkline.errors import TrunklineError

MAX_MEMBERS = 5_000_000
MAX_DEPTH = 80
KEPT_FREE = 64 * 1024 * 1024
"""Bytes of the disk that stay free during unpacking."""

_GITS = re.compile(
    r"HEAD|config|packed-refs|index|refs(/[^/]+)*|objects|objects/info|objects/pack|objects/[0-9a-f]{2}"
    r"|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]{40}\.(pack|idx|rev)"
)
"""The parts of a repository that an export contains. Hooks, alternate object stores and attributes are not
among them."""


class InvalidArchive(TrunklineError):
    """The archive cannot be used. Nothing was changed."""

    def __init__(self, why: str, hint: str = "Nothing was changed. Take another archive.") -> None:
        super().__init__(f"The archive cannot be used: {why}.", hint=hint)


def unpack(
    archive: Path, folder: Path, *, on_progress: Callable[[int], None] = lambda size: None
) -> ArchiveManifest:
    """Unpack an archive of memory into an empty folder, and verify its checksums.

    ``on_progress`` is called with the number of bytes that were unpacked so far.

    Raises:
        InvalidArchive: the archive is damaged, has a newer format, or contains a member that must not be unpacked.
        OSError: the archive cannot be read, or the folder cannot be written.
    """
    with open_tar(archive) as tar:
        manifest = _manifest(tar)
    with open_tar(archive) as tar, _report_clashes():
        _Unpacking(tar, folder, on_progress).run()
    return manifest


def read_manifest(archive: Path) -> ArchiveManifest | None:
    """Return the manifest of an archive; None when it is not an archive of memory. Raises OSError."""
    try:
        with open_tar(archive) as tar:
            return _manifest(tar)
    except InvalidArchive as error:
        if isinstance(error, _NoManifest):
            return None
        raise


@contextmanager
def _report_clashes() -> Iterator[None]:
    """Convert an error about names that this file system cannot store in one folder to InvalidArchive."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ):
            raise InvalidArchive("it holds names that this file system cannot store together") from error
        raise


class _NoManifest(InvalidArchive):
    """The archive has no manifest, so it is not an archive of memory."""


@contextmanager
def open_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open an uncompressed tar file. Raises InvalidArchive and OSError."""
    try:
        with tarfile.open(archive, "r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        why = str(error).partition("\n")[0].rstrip(" :-.") or "it ends in its middle"
        raise _NoManifest(f"it is not a complete tar archive ({why})") from error


def _manifest(tar: tarfile.TarFile) -> ArchiveManifest:
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > 256 * 1024 * 1024:
        raise _NoManifest("it is not an export of Trunkline")
    data = tar.extractfile(first)
    try:
        manifest = msgspec.json.decode(data.read() if data else b"", type=ArchiveManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidArchive("its manifest cannot be read") from error
    if manifest.schema > SCHEMA:
        raise InvalidArchive(
            f"it was made by Trunkline {manifest.version[:40]!r}, which is newer (format {manifest.schema}; this one "
            f"supports up to {SCHEMA})",
            hint="Nothing was changed. Update Trunkline, then import.",
        )
    return manifest


class _Unpacking:
    """The unpacking of one archive into a folder."""

    def __init__(self, tar: tarfile.TarFile, folder: Path, on_progress: Callable[[int], None]) -> None:
        self._tar = tar
        self._folder = folder
        self._on_progress = on_progress
        self._digests: dict[str, str] = {}
        self._room = shutil.disk_usage(folder).free - KEPT_FREE
        self._size = 0

    def run(self) -> None:
        """Unpack all members and verify their checksums."""
        sums: bytes | None = None
        for count, member in enumerate(self._members()):
            if sums is not None:
                raise InvalidArchive("something follows after its end")
            if count > MAX_MEMBERS:
                raise InvalidArchive("it holds too many files")
            path = safe_name(member)
            self._size += member.size
            if self._size > self._room:
                raise InvalidArchive("the disk has too little free space", hint="Free some space.")
            if member.name == SUMS:
                sums = self._read(member)
            elif member.isdir():
                self._insist_on_known(path)
                make_private(self._folder / path)
            else:
                self._insist_on_known(path)
                self._one(member, path)
            self._on_progress(self._size)
        if sums is None:
            raise InvalidArchive("its end is missing")
        self._check(sums)

    def _members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the members one at a time. ``tarfile`` itself would keep all of them in memory."""
        while (member := self._tar.next()) is not None:
            self._tar.members = []  # type: ignore[attr-defined]
            yield member

    def _read(self, member: tarfile.TarInfo) -> bytes:
        data = self._tar.extractfile(member)
        return b"" if data is None else data.read()

    def _insist_on_known(self, path: PurePosixPath) -> None:
        first, *rest = path.parts
        if first == MEMORY and rest[:1] == [".git"]:
            inside = "/".join(rest[1:])
            known = not inside or _GITS.fullmatch(inside) is not None
        else:
            known = first in (MEMORY, DERIVED) or str(path) in (MANIFEST, README)
        if not known:
            raise InvalidArchive(f"it holds {str(path)[:200]!r}, which no export contains")

    def _one(self, member: tarfile.TarInfo, path: PurePosixPath) -> None:
        if member.name in self._digests:
            raise InvalidArchive(f"it holds {member.name[:200]!r} twice")
        source = self._tar.extractfile(member)
        assert source is not None
        target = self._folder / path
        make_private(target.parent)
        mode = 0o700 if member.mode & 0o100 else 0o600
        self._digests[member.name] = copy_with_digest(source, target, mode)

    def _check(self, sums: bytes) -> None:
        wrong = checksum_mismatches(sums, self._digests)
        if wrong:
            raise InvalidArchive(f"{wrong[0][:200]!r} differs from its checksum in the archive")


def safe_name(member: tarfile.TarInfo) -> PurePosixPath:
    """Return the path of a member below the target folder. Raises InvalidArchive for a member that must not
    be unpacked."""
    path = PurePosixPath(member.name)
    shown = member.name[:200]
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in member.name:
        raise InvalidArchive(f"it holds {shown!r}, a path outside of the archive")
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise InvalidArchive(f"it holds {shown!r}, which is not a regular file")
    if len(path.parts) > MAX_DEPTH or any(ord(letter) < 32 for letter in member.name):
        raise InvalidArchive(f"it holds {shown!r}, which is not a valid file name")
    return path


def is_safe(name: str) -> bool:
    """Report whether a file of this name may be unpacked on any file system."""
    try:
        name.encode()
        safe_name(tarfile.TarInfo(name))
    except (InvalidArchive, UnicodeEncodeError):
        return False
    return True


def copy_with_digest(source: IO[bytes], target: Path, mode: int) -> str:
    """Copy the rest of a file to a new file, and return its checksum. Raises OSError."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        while piece := source.read(1024 * 1024):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def checksum_mismatches(sums: bytes, digests: Mapping[str, str]) -> list[str]:
    """Return the files that differ from ``sums``, are missing, or are not listed in it."""
    lines = sums.decode("utf-8", "replace").split("\n")
    said = {name: digest for digest, _, name in (line.partition("  ") for line in lines if line)}
    wrong = [name for name, digest in digests.items() if said.get(name) != digest]
    return [*wrong, *sorted(said.keys() - digests.keys())]
