"""The plain files that a person sees under the memory root. Knows nothing of git, commits or conversations.

Nothing outside the root can be reached (``looking``). New content is staged beside the repository and moved into place
in one step; files that only grow are appended to.
"""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trunkline.api.bus import Refusal
from trunkline.api.store import RootReader, parents
from trunkline_git_store.fsync import Syncer


class FileStat(msgspec.Struct, frozen=True, array_like=True):
    """The file status that distinguishes two states of a file without reading it."""

    modified: int
    size: int
    inode: int

    @classmethod
    def from_stat(cls, status: os.stat_result) -> "FileStat":
        """The stamp of a file's status."""
        return cls(status.st_mtime_ns, status.st_size, status.st_ino)


class StagedFile(msgspec.Struct, frozen=True):
    """A finished file that waits to be moved into place."""

    name: str
    stamp: FileStat


class Worktree(RootReader):
    """The files under ``root``; ``stage`` is a folder on the same disk for files on their way."""

    def __init__(self, root: Path, stage: Path, syncer: Syncer) -> None:
        super().__init__(root)
        self._stage = str(stage)
        self._syncer = syncer
        self._touched: set[str] = set()
        self._count = 0
        self._steady = threading.local()
        self.folds = _is_case_insensitive(stage)
        """True when this file system treats names that differ only in case as the same."""

    # Changing ------------------------------------------------------------------------------------------------

    def stage(self, data: bytes, *, executable: bool = False) -> StagedFile:
        """Write a finished file aside."""
        self._count += 1
        name = f"{os.getpid()}-{self._count}"
        mode = 0o777 if executable else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = os.open(f"{self._stage}/{name}", flags, mode)
        with os.fdopen(file, "wb", buffering=0) as opened:
            _write_all(opened.fileno(), data)
            return StagedFile(name, FileStat.from_stat(os.fstat(file)))

    def staged_path(self, staged: StagedFile) -> str:
        """Return the path of a staged file, for syncing it."""
        return f"{self._stage}/{staged.name}"

    def sync_staged(self, staged: StagedFile) -> None:
        """Bring a staged file onto the disk."""
        self._syncer.sync([self.staged_path(staged)])

    def discard(self, staged: StagedFile) -> None:
        """Drop a staged file that is not needed."""
        Path(self._stage, staged.name).unlink(missing_ok=True)

    def clear_stage(self) -> None:
        """Drop whatever an earlier process left half-done."""
        for left in Path(self._stage).iterdir():
            left.unlink()

    def place(self, staged: StagedFile, path: str) -> None:
        """Move a staged file to its path, over whatever file is there."""
        self._make_parents(path)
        with self._parent(path) as (handle, name):
            os.rename(f"{self._stage}/{staged.name}", name, dst_dir_fd=handle)
        self._touch_parent(path)

    def append(self, path: str, size: int, tail: bytes) -> FileStat:
        """Add ``tail`` to a file of ``size`` bytes. Raises OSError when it has another size."""
        with self._parent(path) as (handle, name):
            file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
        with os.fdopen(file, "wb", buffering=0):
            if os.fstat(file).st_size != size:
                raise OSError(errno.ESTALE, "the file changed while it was appended to", path)
            _write_all(file, tail)
            os.fsync(file)
            return FileStat.from_stat(os.fstat(file))

    def remove(self, path: str) -> None:
        """Remove a file, and the folders above that it leaves empty. Nothing happens when it is absent."""
        try:
            with self._parent(path) as (handle, name):
                os.unlink(name, dir_fd=handle)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._touch_parent(path)
        self.remove_empty_parents(path)

    def remove_empty_parents(self, path: str) -> None:
        """Remove the folders above a path that are empty: a file that was removed there has left them so."""
        for above in reversed(parents(path)):
            try:
                with self._parent(above) as (handle, name):
                    os.rmdir(name, dir_fd=handle)
            except (OSError, Refusal):
                return
            self._forget_folder(above)
            self._touch_parent(above)

    def sync_folders(self) -> None:
        """Bring onto the disk which names the touched folders hold."""
        touched, self._touched = self._touched, set()
        self._syncer.sync(f"{self.root}/{folder}" for folder in touched)

    @contextmanager
    def keep_folders_open(self) -> Iterator[None]:
        """Keep the folders that this thread opens open until this ends: a group of writes looks at each many times."""
        self._steady.folders = {}
        try:
            yield
        finally:
            for handle in self._steady.folders.values():
                os.close(handle)
            self._steady.folders = None

    # Walking by handle ---------------------------------------------------------------------------------------

    def _folder(self, path: str) -> int:
        """A handle of a folder. Raises FileNotFoundError, and Refusal when something else is on the way."""
        kept: dict[str, int] | None = getattr(self._steady, "folders", None)
        if kept is not None and path in kept:
            return os.dup(kept[path])
        handle = super()._folder(path)
        if kept is not None:
            kept[path] = os.dup(handle)
        return handle

    def _forget_folder(self, path: str) -> None:
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


def _is_case_insensitive(folder: Path) -> bool:
    probe = folder / "Probe"
    probe.touch()
    try:
        return (folder / "pROBE").exists()
    finally:
        probe.unlink(missing_ok=True)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
