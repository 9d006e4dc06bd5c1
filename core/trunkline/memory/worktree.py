"""The plain files that a person sees under the memory root. Knows nothing of git, commits or conversations.

Every path is walked folder by folder with directory handles that follow no link, so nothing outside the root can be
reached. New content is staged beside the repository and moved into place in one step; files that only grow are
appended to.
"""

import errno
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from trunkline.memory.durable import Syncer
from trunkline.memory.paths import ascii_safe, parents, plain, refused
from trunkline.messages.memory import MemoryEntry
from trunkline_bus import Refusal

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """What tells one state of a file from another without reading it."""

    modified: int
    size: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of a file's status."""
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


class Staged(msgspec.Struct, frozen=True):
    """A finished file that waits to be moved into place."""

    name: str
    stamp: Stamp


class Shut(PermissionError):
    """A file or folder that the system does not let us open; ``path`` says which."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES), path)
        self.path = path

    @property
    def why(self) -> str:
        """What a person is told."""
        return f"the system does not let Trunkline open {ascii_safe(self.path)!r}, and chmod can change that"


class Worktree:
    """The files under ``root``; ``stage`` is a folder on the same disk for files on their way."""

    def __init__(self, root: Path, stage: Path, syncer: Syncer) -> None:
        self.root = root
        self._stage = str(stage)
        self._syncer = syncer
        self._handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._touched: set[str] = set()
        self._count = 0
        self._steady = threading.local()
        self.folds = _folds(stage)
        """Whether this file system takes names that differ only in case for the same one."""

    def close(self) -> None:
        """Let go of the root."""
        os.close(self._handle)

    # Looking -------------------------------------------------------------------------------------------------

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
            raise not_found(path) from None
        except Shut:
            raise
        except PermissionError:
            raise Shut(path) from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise refused(path, "links and special files are not followed") from None
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

    def status(self, path: str) -> os.stat_result | None:
        """The status of whatever is at a path, None for nothing. What lies behind a link counts as nothing."""
        try:
            with self._parent(path) as (handle, name):
                return os.stat(name, dir_fd=handle, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError, Refusal):
            return None

    # Changing ------------------------------------------------------------------------------------------------

    def stage(self, data: bytes, *, executable: bool = False) -> Staged:
        """Write a finished file aside."""
        self._count += 1
        name = f"{os.getpid()}-{self._count}"
        mode = 0o777 if executable else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = os.open(f"{self._stage}/{name}", flags, mode)
        with os.fdopen(file, "wb", buffering=0) as opened:
            _write_all(opened.fileno(), data)
            return Staged(name, Stamp.of(os.fstat(file)))

    def staged_path(self, staged: Staged) -> str:
        """Where a staged file lies, for syncing it."""
        return f"{self._stage}/{staged.name}"

    def sync_staged(self, staged: Staged) -> None:
        """Bring a staged file onto the disk."""
        self._syncer.sync([self.staged_path(staged)])

    def discard(self, staged: Staged) -> None:
        """Drop a staged file that is not needed."""
        Path(self._stage, staged.name).unlink(missing_ok=True)

    def clear_stage(self) -> None:
        """Drop whatever an earlier process left half-done."""
        for left in Path(self._stage).iterdir():
            left.unlink()

    def place(self, staged: Staged, path: str) -> None:
        """Move a staged file to its path, over whatever file is there."""
        self._make_parents(path)
        with self._parent(path) as (handle, name):
            os.rename(f"{self._stage}/{staged.name}", name, dst_dir_fd=handle)
        self._touch_parent(path)

    def append(self, path: str, size: int, tail: bytes) -> Stamp:
        """Add ``tail`` to a file of ``size`` bytes. Raises OSError when it has another size."""
        with self._parent(path) as (handle, name):
            file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        with os.fdopen(file, "wb", buffering=0):
            if os.fstat(file).st_size != size:
                raise OSError(errno.ESTALE, "the file changed while it was appended to", path)
            _write_all(file, tail)
            os.fsync(file)
            return Stamp.of(os.fstat(file))

    def remove(self, path: str) -> None:
        """Remove a file, and the folders above that it leaves empty. Nothing happens when it is absent."""
        try:
            with self._parent(path) as (handle, name):
                os.unlink(name, dir_fd=handle)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._touch_parent(path)
        self.remove_empty_above(path)

    def remove_empty_above(self, path: str) -> None:
        """Remove the folders above a path that are empty: a file that was removed there has left them so."""
        for above in reversed(parents(path)):
            try:
                with self._parent(above) as (handle, name):
                    os.rmdir(name, dir_fd=handle)
            except (OSError, Refusal):
                return
            self._let_go(above)
            self._touch_parent(above)

    def sync_folders(self) -> None:
        """Bring onto the disk which names the touched folders hold."""
        touched, self._touched = self._touched, set()
        self._syncer.sync(f"{self.root}/{folder}" for folder in touched)

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Keep the folders that this thread opens open until this ends: a group of writes looks at each many times."""
        self._steady.folders = {}
        try:
            yield
        finally:
            for handle in self._steady.folders.values():
                os.close(handle)
            self._steady.folders = None

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
        kept: dict[str, int] | None = getattr(self._steady, "folders", None)
        if kept is not None and path in kept:
            return os.dup(kept[path])
        handle = self._walk(path)
        if kept is not None:
            kept[path] = os.dup(handle)
        return handle

    def _walk(self, path: str) -> int:
        handle, walked = os.dup(self._handle), ""
        for name in path.split("/") if path else ():
            walked = f"{walked}/{name}" if walked else name
            try:
                below = os.open(name, _FOLDER, dir_fd=handle)
            except PermissionError:
                raise Shut(walked) from None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise refused(path, f"{name!r} on the way is a link or a file, not a folder") from None
                raise
            finally:
                os.close(handle)
            handle = below
        return handle

    def _let_go(self, path: str) -> None:
        """The folder is gone: a new one of its name is another."""
        kept: dict[str, int] | None = getattr(self._steady, "folders", None)
        if kept is not None and path in kept:
            os.close(kept.pop(path))

    def _make_parents(self, path: str) -> None:
        try:
            os.close(self._folder(path.rpartition("/")[0]))
        except FileNotFoundError:
            for above in parents(path):
                self._make_folder(above)

    def _make_folder(self, path: str) -> None:
        with self._parent(path) as (handle, name):
            try:
                os.mkdir(name, dir_fd=handle)
            except FileExistsError:
                return
        self._touch_parent(path)

    def _touch_parent(self, path: str) -> None:
        self._touched.add(path.rpartition("/")[0])

    def _scan(
        self, handle: int, path: str, *, recursive: bool, folders: bool
    ) -> Iterator[tuple[str, os.stat_result]]:
        """What lies in an open folder; closes the handle."""
        with _closing(handle), os.scandir(handle) as entries:
            found = list(_statuses(entries))
            if path and any(name == ".git" for name, _ in found):
                return
            for name, status in found:
                below = f"{path}/{name}" if path else name
                if not plain(below) or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
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


def not_found(path: str) -> Refusal:
    """There is no such file."""
    return Refusal("not_found", f"There is no file {path!r} in memory.")


def _statuses(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    for entry in entries:
        with suppress(FileNotFoundError):  # it vanished while we looked
            yield entry.name, entry.stat(follow_symlinks=False)


def _folds(folder: Path) -> bool:
    probe = folder / "Probe"
    probe.touch()
    try:
        return (folder / "pROBE").exists()
    finally:
        probe.unlink(missing_ok=True)


def _insist_on_file(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise refused(path, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise refused(path, "links and special files are not followed")


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


@contextmanager
def _closing(handle: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(handle)
