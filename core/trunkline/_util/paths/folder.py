"""A folder held by its file descriptor. Every file below it is opened relative to its parent's descriptor, with
``O_NOFOLLOW``.

So the checked file is the file that is used: no file can be replaced between check and use. Requires directory file
descriptors (Linux and macOS).
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Literal, NoReturn

from trunkline._util.paths.path_rules import PathRefused, check_movable, is_absolute_path, relative_names
from trunkline._util.paths.repositories import hides_password, is_bare
from trunkline._util.paths.scope import WORKSPACE_ONLY, FileIdentity, PathScope, refuse_closed

MAX_DEPTH = 64

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry at a path, with links resolved when the path is absolute. ``size`` is in bytes."""

    path: str
    kind: Kind
    size: int
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class _Place:
    """A resolved path: the path as given, the descriptor of its root, the names below the root, and the prefix that
    is shown before these names.
    """

    path: str
    root: int
    names: tuple[str, ...]
    above: str = ""

    def shown(self, *more: str) -> str:
        return self.above + "/".join((*self.names, *more))


class Folder:
    """A folder held by its file descriptor. Paths are relative to it, with ``/`` between names; ``""`` is the folder
    itself. Absolute paths are permitted within the ``reach`` that it was opened with, by default none.

    Guarantees: no method reads or changes a file outside of the folder and its ``reach``, even if another process
    replaces a folder by a link meanwhile.

    Not guaranteed: that a file stays the same between two calls.

    Errors: all methods raise PathRefused for a path that is not permitted, and OSError, with the path as the caller
    gave it, for errors of the system (absent, full, not permitted).
    """

    def __init__(self, handle: int, reach: PathScope, resources: ExitStack) -> None:
        self._root = handle
        self._reach = reach
        self._held = resources
        self._roots: dict[Path, int] = {}
        self._closed: frozenset[FileIdentity] = frozenset(reach.closed_identities())

    # Reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def open_read(self, path: str) -> Iterator[BinaryIO]:
        """Open the regular file at the path to read bytes. Use the result with ``with``. Raises PathRefused for a
        folder and a special file too.
        """
        with self._opened(path, os.O_RDONLY) as handle, open(handle, "rb", closefd=False) as file:
            yield file

    def read_bytes(self, path: str, *, limit: int | None = None) -> bytes:
        """Return the file's content, at most ``limit`` bytes. Raises PathRefused as ``open_read`` does."""
        with self.open_read(path) as file:
            return file.read(-1 if limit is None else limit)

    def stat(self, path: str = "") -> FolderEntry:
        """Return the entry at the path. Raises FileNotFoundError if there is none."""
        place = self._find(path, follow=True)
        with _translate_os_errors(path), self._parent(place) as (parent, name):
            return _entry(place.shown(), _look(parent, name) if name else os.fstat(parent))

    def exists(self, path: str) -> bool:
        """Report whether there is an entry at the path, including a dangling link. Raises OSError if that cannot be
        determined.
        """
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def listdir(self, path: str = "") -> list[FolderEntry]:
        """Return the entries of the folder at the path, by name. Raises PathRefused if the path is no folder that may
        be opened, and FileNotFoundError if there is nothing at it.
        """
        place = self._find(path, follow=True)
        with _translate_os_errors(path), self._folder(place, len(place.names)) as handle:
            found = []
            for name in sorted(os.listdir(handle)):  # noqa: PTH208 pathlib knows no handles
                with suppress(FileNotFoundError):
                    found.append(_entry(place.shown(name), _look(handle, name)))
            return found

    def walk(self, path: str = "", *, depth: int = MAX_DEPTH) -> Iterator[FolderEntry]:
        """Yield everything below the path, at most ``depth`` folders deep, each folder before its content. Links are
        not followed. Folders that disappear or cannot be read are skipped. Raises as ``listdir`` for the path itself.
        """
        yield from self._below(self.listdir(path), depth)

    def _below(self, entries: list[FolderEntry], depth: int) -> Iterator[FolderEntry]:
        for entry in entries:
            yield entry
            if entry.kind == "folder" and depth > 1:
                with suppress(OSError, PathRefused):
                    yield from self._below(self.listdir(entry.path), depth - 1)

    # Writing ---------------------------------------------------------------------------------------------------

    def write_atomic(self, path: str, content: bytes | Iterable[bytes]) -> None:
        """Replace the file's content atomically; it is on disk when this returns.

        The content may be passed in pieces, so its size is not limited by memory. The file's permissions are kept. Its
        folder must exist.

        Raises OSError if the content cannot be written; the file is unchanged then.
        """
        with _translate_os_errors(path), self._parent(self._find(path), changes=True) as (parent, name):
            mode = self._mode_of_old(parent, _given(path, name), path)
            temporary = f".{token_hex(8)}.part"
            try:
                _write_new(parent, temporary, content, mode)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=parent)
                raise
            os.fsync(parent)

    def append(self, path: str, content: bytes) -> None:
        """Append the content to the file, creating it when absent; it is on disk when this returns. Raises OSError if
        the content cannot be written; a part of it may be in the file then.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with self._opened(path, flags) as handle, _translate_os_errors(path):
            _write_all(handle, content)
            os.fsync(handle)

    def mkdir(self, path: str, *, parents: bool = True) -> None:
        """Create the folder; an existing one is no error. ``parents`` creates missing parents too. Raises PathRefused
        if a part of the path is no folder.
        """
        place = self._find(path)
        whole = len(place.names)
        with _translate_os_errors(path):
            for depth in range(1 if parents else max(whole, 1), whole + 1):
                with self._folder(place, depth - 1, changes=True) as parent:
                    with suppress(FileExistsError):
                        os.mkdir(place.names[depth - 1], dir_fd=parent)
                    with _closed(self._enter(parent, place.names[depth - 1], path)):
                        pass

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; it is on disk when this returns. A file, or an empty folder of the same kind, at the
        target is replaced. Raises FileNotFoundError if there is nothing at the source, and OSError if a folder at the
        target is not empty.
        """
        for place in (self._find(source), self._find(target)):
            check_movable(place.path, place.names)
            if place.above and self._reach.contains_closed(place.shown()):
                refuse_closed(place.path)
        with (
            _translate_os_errors(source),
            self._parent(self._find(source), changes=True) as (old, before),
            self._parent(self._find(target), changes=True) as (new, after),
        ):
            self._no_link(old, _given(source, before), source)
            _refuse_password(old, before, source)
            with suppress(NotADirectoryError), _closed(os.open(before, _FOLDER, dir_fd=old)) as moved:
                _refuse_bare(moved, source)
            os.rename(before, _given(target, after), src_dir_fd=old, dst_dir_fd=new)
            os.fsync(new)
            os.fsync(old)

    def unlink(self, path: str) -> None:
        """Delete the file. Raises PathRefused for a link, and FileNotFoundError if there is no file."""
        with _translate_os_errors(path), self._parent(self._find(path), changes=True) as (parent, name):
            self._no_link(parent, _given(path, name), path)
            os.unlink(name, dir_fd=parent)

    def rmdir(self, path: str) -> None:
        """Delete the empty folder. Raises OSError if it is not empty or no folder."""
        with _translate_os_errors(path), self._parent(self._find(path), changes=True) as (parent, name):
            os.rmdir(_given(path, name), dir_fd=parent)

    # Handles ---------------------------------------------------------------------------------------------------

    def _find(self, path: str, *, follow: bool = False) -> _Place:
        """Return the place of a path. In an absolute path links are resolved, at its end only with
        ``follow``."""
        if not is_absolute_path(path):
            return _Place(path, self._root, relative_names(path))
        root, names = self._reach.resolve(path, follow=follow)
        if root not in self._roots:
            handle = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
            self._roots[root] = self._held.enter_context(_closed(handle))
        return _Place(path, self._roots[root], names, f"{root}/".replace("//", "/"))

    @contextmanager
    def _folder(self, place: _Place, depth: int, *, changes: bool = False) -> Iterator[int]:
        """Open the folder of the first ``depth`` names of the place. With ``changes``, refuse bare repositories,
        whose content must not be changed.
        """
        handle = os.open(".", _FOLDER, dir_fd=place.root)
        try:
            for name in place.names[:depth]:
                inner = self._enter(handle, name, place.path)
                os.close(handle)
                handle = inner
                if changes:
                    _refuse_bare(handle, place.path)
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _parent(self, place: _Place, *, changes: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder that contains the place; yield its descriptor and the last name ("" for the root
        itself)."""
        with self._folder(place, len(place.names) - 1 if place.names else 0, changes=changes) as handle:
            yield handle, place.names[-1] if place.names else ""

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        with _closed(self._open(path, flags)) as handle:
            yield handle

    def _open(self, path: str, flags: int) -> int:
        reads = flags == os.O_RDONLY
        place = self._find(path, follow=reads)
        with _translate_os_errors(path), self._parent(place, changes=not reads) as (parent, name):
            self._no_link(parent, _given(path, name), path)
            _refuse_password(parent, name, path)
            try:
                handle = os.open(name, flags | _FILE, 0o666, dir_fd=parent)
            except OSError as error:
                _explain(error, path)
            try:
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    raise PathRefused(f"{path!r} is not a regular file.")
                self._not_closed(status, path)
            except BaseException:
                os.close(handle)
                raise
            return handle

    def _enter(self, parent: int, name: str, path: str) -> int:
        try:
            handle = os.open(name, _FOLDER, dir_fd=parent)
        except OSError as error:
            self._no_link(parent, name, path)
            _explain(error, path)
        try:
            self._not_closed(os.fstat(handle), path)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _no_link(self, parent: int, name: str, path: str) -> None:
        """Refuse a link with a clear sentence. Opening refuses it too, so the protection does not depend on
        this check."""
        with suppress(FileNotFoundError):
            status = _look(parent, name)
            if stat.S_ISLNK(status.st_mode):
                _refuse_link(path)
            self._not_closed(status, path)

    def _not_closed(self, status: os.stat_result, path: str) -> None:
        if self._closed and (status.st_dev, status.st_ino) in self._closed:
            refuse_closed(path)

    def _mode_of_old(self, parent: int, name: str, path: str) -> int | None:
        """Return the permissions of the file that will be replaced; None when there is none yet."""
        try:
            status = _look(parent, name)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(status.st_mode):
            _refuse_link(path)
        if not stat.S_ISREG(status.st_mode):
            raise PathRefused(f"{path!r} is not a regular file.")
        self._not_closed(status, path)
        return stat.S_IMODE(status.st_mode)


@contextmanager
def open_beneath(root: Path, reach: PathScope = WORKSPACE_ONLY) -> Iterator[Folder]:
    """Open a folder, so that files below it, and absolute paths within ``reach``, can be opened, and no others.

    Raises:
        OSError: the folder does not exist, is not a folder, or cannot be read.
    """
    with ExitStack() as held:
        handle = held.enter_context(_closed(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))
        yield Folder(handle, reach, held)


def _given(path: str, name: str) -> str:
    if not name:
        raise PathRefused(f"{path!r} is the workspace itself. Name something in it.")
    return name


def _refuse_link(path: str) -> NoReturn:
    raise PathRefused(f"{path!r} goes through a symbolic link, which is not followed. Name the file itself.")


def _refuse_bare(folder: int, path: str) -> None:
    if is_bare(folder):
        raise PathRefused(f"{path!r} lies in a bare git repository. Only the tool git changes it, by a push.")


def _refuse_password(parent: int, name: str, path: str) -> None:
    if hides_password(parent, name):
        raise PathRefused(
            f"{path!r} holds settings of git with a password. It can be neither read nor moved."
        )


def _explain(error: OSError, path: str) -> NoReturn:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        _refuse_link(path)
    if error.errno == errno.ENXIO:
        raise PathRefused(f"{path!r} is not a regular file.") from error
    raise error


@contextmanager
def _translate_os_errors(path: str) -> Iterator[None]:
    """Replace the path in every OSError by the path that the caller gave."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


@contextmanager
def _closed(handle: int) -> Iterator[int]:
    try:
        yield handle
    finally:
        os.close(handle)


def _look(parent: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _entry(path: str, status: os.stat_result) -> FolderEntry:
    kinds: dict[int, Kind] = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "link",
    }
    kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
    shown = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return FolderEntry(shown, kind, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _write_new(parent: int, name: str, content: bytes | Iterable[bytes], mode: int | None) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=parent)
    with _closed(handle):
        if mode is not None:
            os.fchmod(handle, mode)
        for piece in (content,) if isinstance(content, bytes) else content:
            _write_all(handle, piece)
        os.fsync(handle)


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
