"""Looking at the plain files under the memory root: what is there, and what a file holds. Changes nothing.

Every path is walked folder by folder with directory handles that follow no link, and only regular files are read. The
memory worker and doctor look through this, so that both judge the same.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from trunkline.contracts.memory.messages import MemoryEntry, UnreadEntry
from trunkline.contracts.memory.path_rules import ascii_safe, decode_text, is_normalized, path_refusal
from trunkline_bus import Refusal

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

NOT_FOLLOWED = "links and special files are not followed"


class AccessDenied(PermissionError):
    """A file or folder that the system does not let us open; ``path`` says which."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES), path)
        self.path = path

    @property
    def reason(self) -> str:
        """The explanation for a person."""
        return f"the system does not let Trunkline open {ascii_safe(self.path)!r}, and chmod can change that"


class RootReader:
    """The files under ``root``, as they are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the root."""
        os.close(self._handle)

    def probe(self, path: str) -> os.stat_result | None:
        """The status of a file, None when nothing is there.

        Raises:
            Refusal: ``invalid_path``: a link, a folder or something special is there, or on the way.
        """
        try:
            with self._parent(path) as (handle, name):
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return None
        _insist_on_file(path, status)
        return status

    def read(self, path: str) -> tuple[bytes, os.stat_result]:
        """A file's bytes and status. Raises Refusal: ``not_found``, or as ``probe``."""
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
        """Names under a folder, sorted; links, special files and names that no path may hold are left out.

        Raises:
            Refusal: ``not_found``, or ``invalid_path`` when it is no folder.
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
        """Every regular file under a folder, in no order; folders that are repositories of their own are left out."""
        try:
            handle = self._folder(path)
        except (FileNotFoundError, Refusal):
            return iter(())
        return self._scan(handle, path, recursive=True, folders=False)

    def text(self, path: str) -> str:
        """A file's text. Raises Refusal as ``read``, and ``invalid_path`` for what is no text or may not be opened."""
        try:
            return decode_text(path, self.read(path)[0])
        except AccessDenied as shut:
            raise path_refusal(shut.path, shut.reason) from shut

    def unread(self, path: str) -> list[UnreadEntry]:
        """Return the entries under a folder, at any depth, that are neither listed nor read, sorted; none where there
        is no such folder. Raises as ``entries`` where it is no folder."""
        try:
            handle = self._folder(path)
        except FileNotFoundError:
            return []
        except AccessDenied as shut:
            raise path_refusal(shut.path, shut.reason) from shut
        return sorted(_unread(handle, path), key=lambda entry: entry.path)

    def status(self, path: str) -> os.stat_result | None:
        """The status of whatever is at a path, None for nothing. What lies behind a link counts as nothing."""
        try:
            with self._parent(path) as (handle, name):
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError, Refusal):
            return None

    # Walking by handle ---------------------------------------------------------------------------------------

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        above, _, name = path.rpartition("/")
        handle = self._folder(above)
        try:
            yield handle, name
        finally:
            os.close(handle)

    def _folder(self, path: str) -> int:
        """A handle of a folder. Raises FileNotFoundError, and Refusal when something else is on the way."""
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
        """Yield the entries of an open folder; close the handle."""
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
        except OSError:  # it vanished, or it may not be read: there is nothing to see in it
            return
        yield from self._scan(inner, below, recursive=True, folders=folders)


def file_not_found(path: str) -> Refusal:
    """There is no such file."""
    return Refusal("not_found", f"There is no file {path!r} in memory.")


def _statuses(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    for entry in entries:
        with suppress(FileNotFoundError):  # it vanished while we looked
            yield entry.name, entry.stat(follow_symlinks=False)


def _unread(handle: int, path: str) -> Iterator[UnreadEntry]:
    """Yield the entries of an open folder that are not read; close the handle."""
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
    except FileNotFoundError:  # it vanished while we looked
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
