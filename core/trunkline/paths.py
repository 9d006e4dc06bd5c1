"""Opening files below a folder and nowhere else, whatever the path says and whoever swaps links meanwhile.

Every component is opened by its parent's handle with ``O_NOFOLLOW``, so what was checked is what is used: there is
no moment between the two. Works where directory handles do (Linux and macOS).
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Literal, NoReturn

from trunkline.errors import ToolError

LONGEST_PATH, LONGEST_NAME, DEEPEST = 4096, 255, 64

PROTECTED_NAMES = ("auth.json", ".env", "id_rsa", "id_ed25519")
"""Names, and endings of names, that no path may have (MB-F15)."""

PROTECTED_FILES = ((".ssh", "config"), (".aws", "credentials"), (".memoryblock", "auth.json"))
"""Files within certain folders that no path may name; the folders themselves cannot be renamed."""

GIT = ".git"
"""A folder that nothing may enter: what is in it makes git run programs, which would be ``exec`` in disguise."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class PathRefused(ToolError):
    """The path leads out of the folder, through a link, or to a protected name. The text says what would do."""


Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a path, relative to the folder. A ``link`` is never followed. ``size`` is in bytes."""

    path: str
    kind: Kind
    size: int
    modified_at: datetime


class Folder:
    """A folder held by its handle. Paths are relative to it, with ``/`` between names; ``""`` is the folder itself.

    All methods raise PathRefused for a path that is not allowed, and OSError, with the path as it was given, for what
    the system refuses (absent, full, not permitted).
    """

    def __init__(self, handle: int) -> None:
        self._root = handle

    # Reading ---------------------------------------------------------------------------------------------------

    @contextmanager
    def open_read(self, path: str) -> Iterator[BinaryIO]:
        """The regular file at the path, opened to read bytes."""
        with self._opened(path, os.O_RDONLY) as handle, open(handle, "rb", closefd=False) as file:
            yield file

    def read_bytes(self, path: str, *, limit: int | None = None) -> bytes:
        """The file's content, of which at most ``limit`` bytes."""
        with self.open_read(path) as file:
            return file.read(-1 if limit is None else limit)

    def stat(self, path: str = "") -> Entry:
        """What stands at the path."""
        parts = _parts(path)
        with _told(path), self._parent(path, parts) as (parent, name):
            return _entry("/".join(parts), _look(parent, name) if name else os.fstat(parent))

    def exists(self, path: str) -> bool:
        """Whether anything stands at the path, be it a link."""
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def listdir(self, path: str = "") -> list[Entry]:
        """What the folder at the path holds, by name."""
        parts = _parts(path)
        with _told(path), self._folder(path, parts) as handle:
            found = []
            for name in sorted(os.listdir(handle)):  # noqa: PTH208 pathlib knows no handles
                with suppress(FileNotFoundError):
                    found.append(_entry("/".join((*parts, name)), _look(handle, name)))
            return found

    def walk(self, path: str = "", *, depth: int = DEEPEST) -> Iterator[Entry]:
        """Everything below the path, ``depth`` folders deep, each folder before what it holds. Links are not followed,
        and folders that vanish or may not be read are passed over."""
        yield from self._below(self.listdir(path), depth)

    def _below(self, entries: list[Entry], depth: int) -> Iterator[Entry]:
        for entry in entries:
            yield entry
            if entry.kind == "folder" and depth > 1:
                with suppress(OSError, PathRefused):
                    yield from self._below(self.listdir(entry.path), depth - 1)

    # Writing ---------------------------------------------------------------------------------------------------

    def write_atomic(self, path: str, content: bytes) -> None:
        """Put the content in the place of the file, on disk when this returns: all of it or nothing.

        The file's permissions stay; the folder it is in must be there.
        """
        with _told(path), self._parent(path, _parts(path)) as (parent, name):
            mode = _mode_of_old(parent, _given(path, name), path)
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
        """Add the content at the file's end, making the file when it is absent; on disk when this returns."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with self._opened(path, flags) as handle, _told(path):
            _write_all(handle, content)
            os.fsync(handle)

    def mkdir(self, path: str, *, parents: bool = True) -> None:
        """Make the folder; that it is there already is no error. ``parents`` makes those on the way too."""
        parts = _parts(path)
        with _told(path):
            for depth in range(1 if parents else len(parts), len(parts) + 1):
                with self._parent(path, parts[:depth]) as (parent, name):
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=parent)
                    with _closed(_enter(parent, name, path)):
                        pass

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder, on disk when this returns; a file or empty folder of its kind at the target is
        replaced."""
        _movable(source)
        _movable(target)
        with (
            _told(source),
            self._parent(source, _parts(source)) as (old, before),
            self._parent(target, _parts(target)) as (new, after),
        ):
            _no_link(old, _given(source, before), source)
            os.rename(before, _given(target, after), src_dir_fd=old, dst_dir_fd=new)
            os.fsync(new)
            os.fsync(old)

    def unlink(self, path: str) -> None:
        """Delete the file. A link is refused."""
        with _told(path), self._parent(path, _parts(path)) as (parent, name):
            _no_link(parent, _given(path, name), path)
            os.unlink(name, dir_fd=parent)

    def rmdir(self, path: str) -> None:
        """Delete the empty folder."""
        with _told(path), self._parent(path, _parts(path)) as (parent, name):
            os.rmdir(_given(path, name), dir_fd=parent)

    # Handles ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _folder(self, path: str, parts: tuple[str, ...]) -> Iterator[int]:
        handle = os.open(".", _FOLDER, dir_fd=self._root)
        try:
            for part in parts:
                inner = _enter(handle, part, path)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _parent(self, path: str, parts: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """The handle of the folder that holds the path, and the path's last name ("" for the folder itself)."""
        with self._folder(path, parts[:-1]) as handle:
            yield handle, parts[-1] if parts else ""

    @contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        with _closed(self._open(path, flags)) as handle:
            yield handle

    def _open(self, path: str, flags: int) -> int:
        with _told(path), self._parent(path, _parts(path)) as (parent, name):
            _no_link(parent, _given(path, name), path)
            try:
                handle = os.open(name, flags | _FILE, 0o666, dir_fd=parent)
            except OSError as error:
                _explain(error, path)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise PathRefused(f"{path!r} is not a regular file.")
            return handle


@contextmanager
def beneath(root: Path) -> Iterator[Folder]:
    """Hold a folder, so that files below it can be opened and nothing else.

    Raises:
        OSError: the folder is not there, is no folder, or may not be read.
    """
    with _closed(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as handle:
        yield Folder(handle)


def check_path(path: str) -> str:
    """The path in its plain form, by its text alone: what a policy may look at before anything is opened.

    Raises:
        PathRefused: it is absolute, has ``..`` or ``~``, is too long, no text, or names something protected.
    """
    return "/".join(_parts(path))


def _parts(path: str) -> tuple[str, ...]:
    """The names of the path, after everything that its text alone can have wrong."""
    _refuse_text(path)
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    for part in parts:
        if part == "..":
            raise PathRefused(f"{path!r} has '..' in it. Name a path below the workspace.")
        if len(os.fsencode(part)) > LONGEST_NAME:
            raise PathRefused(
                f"A name in the path is longer than {LONGEST_NAME} bytes. Choose a shorter one."
            )
    if is_protected(parts):
        raise PathRefused(
            f"{path!r} is a protected name, where secrets are kept. It can be neither read nor written."
        )
    if any(_plain(part) == GIT for part in parts):
        raise PathRefused(
            f"{path!r} belongs to git, whose files make it run programs. It can be neither read nor written."
        )
    return parts


def _refuse_text(path: str) -> None:
    if "\0" in path:
        raise PathRefused("The path holds a NUL character.")
    try:
        size = len(path.encode())
    except UnicodeEncodeError as error:
        raise PathRefused("The path is not valid text.") from error
    if size > LONGEST_PATH:
        raise PathRefused(f"The path is longer than {LONGEST_PATH} bytes.")
    if path.startswith("/"):
        raise PathRefused(f"{path!r} is absolute. Name a path relative to the workspace.")
    if path.startswith("~"):
        raise PathRefused(
            f"{path!r} begins with '~', which is not expanded. Name a path relative to the workspace."
        )


def is_protected(parts: tuple[str, ...]) -> bool:
    """Whether the names of a path, in order, end in one where secrets are kept (MB-F15)."""
    plain = tuple(_plain(part) for part in parts)
    if plain and plain[-1].endswith(PROTECTED_NAMES):
        return True
    return any(pair in pairwise(plain) for pair in PROTECTED_FILES)


def _movable(path: str) -> None:
    """Refuses to move what a protected file is recognised by."""
    folders = {folder for folder, _ in PROTECTED_FILES}
    if any(_plain(part) in folders for part in _parts(path)):
        raise PathRefused(f"{path!r} lies in a protected folder. It can be neither moved nor replaced.")


def _plain(name: str) -> str:
    """The name as the most forgiving file system would read it: case, look-alikes, and signs without a shape."""
    if name.isascii():  # nearly all are, and a whole workspace may be looked through
        return name.casefold().rstrip(". ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    seen = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return seen.rstrip(". ")


def _given(path: str, name: str) -> str:
    if not name:
        raise PathRefused(f"{path!r} is the workspace itself. Name something in it.")
    return name


def _enter(parent: int, name: str, path: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        _no_link(parent, name, path)
        _explain(error, path)


def _no_link(parent: int, name: str, path: str) -> None:
    """A plain sentence for a link. The opening itself refuses it too, so nothing hangs on this look."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(_look(parent, name).st_mode):
            _refuse_link(path)


def _refuse_link(path: str) -> NoReturn:
    raise PathRefused(f"{path!r} goes through a symbolic link, which is not followed. Name the file itself.")


def _explain(error: OSError, path: str) -> NoReturn:
    if error.errno in (errno.ELOOP, errno.EMLINK):
        _refuse_link(path)
    if error.errno == errno.ENXIO:
        raise PathRefused(f"{path!r} is not a regular file.") from error
    raise error


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Lets every OSError carry the path as it was given, and no other."""
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


def _entry(path: str, status: os.stat_result) -> Entry:
    kinds: dict[int, Kind] = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "link",
    }
    kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
    shown = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return Entry(shown, kind, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _mode_of_old(parent: int, name: str, path: str) -> int | None:
    """The permissions of the file that will be replaced; None when there is none yet."""
    try:
        status = _look(parent, name)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        _refuse_link(path)
    if not stat.S_ISREG(status.st_mode):
        raise PathRefused(f"{path!r} is not a regular file.")
    return stat.S_IMODE(status.st_mode)


def _write_new(parent: int, name: str, content: bytes, mode: int | None) -> None:
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=parent)
    with _closed(handle):
        if mode is not None:
            os.fchmod(handle, mode)
        _write_all(handle, content)
        os.fsync(handle)


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
