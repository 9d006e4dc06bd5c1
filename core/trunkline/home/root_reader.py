"""Reads the files under the memory root, and lists its folders. Changes nothing.

Every path is opened folder by folder with directory descriptors that follow no link, and only regular files are read.
The memory worker and ``trunkline doctor`` both use this module, so they see the same files.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from trunkline.contracts.memory.files import MemoryEntry, UnreadEntry
from trunkline.contracts.memory.path_rules import ascii_safe, decode_text, is_normalized, path_refusal
from trunkline_bus import Refusal

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

NOT_FOLLOWED = "links and special files are not followed"


class AccessDenied(PermissionError):
    """The system denies access to the file or folder ``path``."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES), path)
        self.path = path

    @property
    def reason(self) -> str:
        """The explanation for people."""
        return f"the system does not let Trunkline open {ascii_safe(self.path)!r}, and chmod can change that"


class RootReader:
    """Reads the files under ``root``.

    Guarantees: nothing outside of the root is read, and no link is followed. No method changes a file.

    Not guaranteed: one snapshot. Files may change between two calls.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Close the root. Called once. Raises nothing."""
        os.close(self._handle)

    def probe(self, path: str) -> os.stat_result | None:
        """Return the status of a file; None if there is nothing at the path.

        Raises:
            Refusal: ``invalid_path``: the path is a folder or a special file, or it is or leads through a link.
        """
        try:
            with self._parent(path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _insist_on_file(path, status)
        return status

    def read(self, path: str) -> tuple[bytes, os.stat_result]:
        """Return a file's bytes and status. Raises Refusal ``not_found``, or as ``probe``."""
        try:
            with self._parent(path) as (handle, name):
                file = os.open(name, _READ, dir_fd=handle)
        except FileNotFoundError:
            raise file_not_found(path) from None
        except AccessDenied:
            raise
        except PermissionError:
            raise AccessDenied(path) from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise path_refusal(path, NOT_FOLLOWED) from None
            raise
        try:
            status = os.fstat(file)
            _insist_on_file(path, status)
            with os.fdopen(file, "rb", closefd=False) as opened:
                return opened.read(), status
        finally:
            os.close(file)

    def entries(self, path: str, *, recursive: bool) -> list[MemoryEntry]:
        """Return the files and folders in a folder, sorted. Links, special files and names that memory does not allow
        are left out.

        Raises:
            Refusal: ``not_found``; ``invalid_path`` if the path is not a folder.
        """
        try:
            handle = self._folder(path)
        except FileNotFoundError:
            raise Refusal("not_found", f"There is no folder {path!r} in memory.") from None
        except AccessDenied as shut:
            raise path_refusal(shut.path, shut.reason) from shut
        found: list[MemoryEntry] = []
        for entry_path, status in self._scan(handle, path, recursive=recursive, folders=True):
            kind = "folder" if stat.S_ISDIR(status.st_mode) else "file"
            size = 0 if kind == "folder" else status.st_size
            when = datetime.fromtimestamp(status.st_mtime, UTC)
            found.append(MemoryEntry(path=entry_path, kind=kind, size=size, modified_at=when))  # type: ignore[arg-type]
        return sorted(found, key=lambda entry: entry.path)

    def files(self, path: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Yield every regular file under a folder, in no order. Folders that are separate git repositories are left
        out. Raises AccessDenied for a folder that the system does not let Trunkline open; a folder that does not exist
        has no files.
        """
        try:
            handle = self._folder(path)
        except (FileNotFoundError, Refusal):
            return iter(())
        return self._scan(handle, path, recursive=True, folders=False)

    def text(self, path: str) -> str:
        """Return a file's text. Raises Refusal as ``read``, and ``invalid_path`` if the file is not text or access is
        denied.
        """
        try:
            return decode_text(path, self.read(path)[0])
        except AccessDenied as shut:
            raise path_refusal(shut.path, shut.reason) from shut

    def unread(self, path: str) -> list[UnreadEntry]:
        """Return the entries under a folder, at any depth, that are neither listed nor read, sorted; none if the folder
        does not exist. Raises Refusal as ``entries`` if the path is not a folder.
        """
        try:
            handle = self._folder(path)
        except FileNotFoundError:
            return []
        except AccessDenied as shut:
            raise path_refusal(shut.path, shut.reason) from shut
        return sorted(_unread(handle, path), key=lambda entry: entry.path)

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of any file at a path; None if there is nothing. Links on the way are not followed. Raises
        AccessDenied if the system does not let Trunkline open a folder on the way.
        """
        try:
            with self._parent(path) as (handle, name):
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError, Refusal):
            return None

    # Opening by descriptor -----------------------------------------------------------------------------------

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        above, _, name = path.rpartition("/")
        handle = self._folder(above)
        try:
            yield handle, name
        finally:
            os.close(handle)

    def _folder(self, path: str) -> int:
        """Return a descriptor of a folder. Raises FileNotFoundError, and Refusal if a part of the path is not a
        folder.
        """
        handle, walked = os.dup(self._handle), ""
        for name in path.split("/") if path else ():
            walked = f"{walked}/{name}" if walked else name
            try:
                below = os.open(name, _FOLDER, dir_fd=handle)
            except PermissionError:
                raise AccessDenied(walked) from None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise path_refusal(
                        path, f"{name!r} on the way is a link or a file, not a folder"
                    ) from None
                raise
            finally:
                os.close(handle)
            handle = below
        return handle

    def _scan(
        self, handle: int, path: str, *, recursive: bool, folders: bool
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the entries of an open folder, and close its descriptor."""
        with _closing(handle), os.scandir(handle) as entries:
            found = list(_statuses(entries))
            if path and any(name == ".git" for name, _ in found):
                return
            for name, status in found:
                below = f"{path}/{name}" if path else name
                if not is_normalized(below) or not (
                    stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
                ):
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    yield below, status
                    continue
                if folders:
                    yield below, status
                if recursive:
                    yield from self._scan_below(handle, name, below, folders=folders)

    def _scan_below(
        self, handle: int, name: str, below: str, *, folders: bool
    ) -> Iterator[tuple[str, os.stat_result]]:
        try:
            inner = os.open(name, _FOLDER, dir_fd=handle)
        except OSError:  # the folder was removed in between, or access is denied
            return
        yield from self._scan(inner, below, recursive=True, folders=folders)


def file_not_found(path: str) -> Refusal:
    """Return the refusal for a file that does not exist."""
    return Refusal("not_found", f"There is no file {path!r} in memory.")


def _statuses(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    for entry in entries:
        with suppress(FileNotFoundError):  # it was removed in between
            yield entry.name, entry.stat(follow_symlinks=False)


def _unread(handle: int, path: str) -> Iterator[UnreadEntry]:
    """Yield the entries of an open folder that are not read, and close its descriptor."""
    with _closing(handle), os.scandir(handle) as entries:
        found = list(_statuses(entries))
        if any(name == ".git" for name, _ in found):
            yield _left(path, "folder", "it is a repository of its own")
            return
        for name, status in found:
            below = f"{path}/{name}" if path else name
            kind = stat.S_IFMT(status.st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFDIR):
                yield _left(below, "other", NOT_FOLLOWED)
            elif not is_normalized(below):
                yield _left(below, "file" if kind == stat.S_IFREG else "folder", "memory allows no such name")
            elif kind == stat.S_IFDIR:
                yield from _unread_below(handle, name, below)


def _unread_below(handle: int, name: str, below: str) -> Iterator[UnreadEntry]:
    try:
        inner = os.open(name, _FOLDER, dir_fd=handle)
    except FileNotFoundError:  # it was removed in between
        return
    except OSError:
        yield _left(below, "folder", AccessDenied(below).reason)
    else:
        yield from _unread(inner, below)


def _left(path: str, kind: Literal["file", "folder", "other"], why: str) -> UnreadEntry:
    return UnreadEntry(path=ascii_safe(path), kind=kind, why=path_refusal(path, why).message)


def _insist_on_file(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise path_refusal(path, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise path_refusal(path, NOT_FOLLOWED)


@contextmanager
def _closing(handle: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(handle)
