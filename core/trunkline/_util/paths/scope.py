"""The reach of absolute paths. Relative paths are in the block's folder, whatever the reach.

An absolute path, or one in a person's home directory (``~/``), is first resolved with its links and ``..``. The
result is opened from its root, by file descriptors that follow no link, so a link that is inserted concurrently is
not followed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from trunkline._util.paths.path_rules import PathRefused, check_names, check_text, relative_names

FileIdentity = tuple[int, int]
"""Device and inode of a file or folder."""


@dataclass(frozen=True, slots=True)
class PathScope:
    """The folders below which absolute paths are permitted; without any only relative paths are permitted.

    ``closed`` folders can be neither entered nor opened, under any name. They are recognized by path, even while they
    do not exist, and by identity (device and inode). A root inside a closed folder is open nevertheless.
    """

    roots: tuple[Path, ...] = ()
    closed: tuple[Path, ...] = ()

    def resolve(self, path: str, *, follow: bool) -> tuple[Path, tuple[str, ...]]:
        """Return the root that contains the path, and the names below the root. With ``follow`` a link at the end is
        resolved too.

        Raises:
            PathRefused: no root contains the path, or a name in it is protected.
        """
        if not self.roots:
            relative_names(path)  # raises the error that states why absolute paths are not permitted
        real = real_path(path, follow=follow)
        for root in sorted(map(os.path.realpath, self.roots), key=len, reverse=True):
            inside = os.path.join(root, "")  # noqa: PTH118 a text that may end with a slash
            if real == root or real.startswith(inside):
                if any(_within(real, place) and not _within(root, place) for place in self._closed()):
                    refuse_closed(path)
                names = tuple(name for name in real.removeprefix(inside).split("/") if name)
                return Path(root), check_names(path, () if real == root else names)
        roots = ", ".join(map(str, self.roots))
        raise PathRefused(f"{path!r} is outside of the folders that this block may use ({roots}).")

    def contains_closed(self, real: str) -> bool:
        """Report whether a resolved path is closed, or contains a closed path."""
        return any(_within(place, real) for place in self._closed())

    def _closed(self) -> Iterator[str]:
        return map(os.path.realpath, self.closed)

    def closed_identities(self) -> Iterator[FileIdentity]:
        """Return the identities of the closed files and folders that exist."""
        for path in self.closed:
            try:
                status = path.stat()
            except OSError:
                continue
            yield status.st_dev, status.st_ino


def refuse_closed(path: str) -> NoReturn:
    """Raise PathRefused for a closed path."""
    raise PathRefused(
        f"{path!r} contains files that no agent may use: Trunkline's own files, keys, or system files."
    )


def _within(real: str, place: str) -> bool:
    return f"{real.rstrip('/')}/".startswith(f"{place.rstrip('/')}/")


WORKSPACE_ONLY = PathScope()
"""The reach that includes only the block's folder."""


def real_path(path: str, *, follow: bool = True) -> str:
    """Return the target of an absolute path with ``~``, links and ``..`` resolved. Without ``follow`` the last name
    is not resolved.

    Raises:
        PathRefused: the text cannot be a path, names another user's ``~``, or names a protected file.
    """
    check_text(path)
    text = _at_home(path)
    check_names(path, [name for name in text.split("/") if name not in ("", ".", "..")])
    place, name = os.path.split(text.rstrip("/") or "/")
    if follow or name in ("", ".", ".."):
        return os.path.realpath(text)
    return os.path.join(os.path.realpath(place), name)  # noqa: PTH118 of texts


def _at_home(path: str) -> str:
    if not path.startswith("~"):
        return path
    if path.partition("/")[0] != "~":
        raise PathRefused(f"{path!r} names another person's folder. Name the whole path.")
    return f"{Path.home()}{path[1:]}"
