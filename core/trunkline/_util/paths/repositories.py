"""Git repositories below a folder: detects bare repositories, and settings that contain a password.

Uses directory file descriptors, as ``folder`` does, so the checked file is the one that is used.
"""

import os
import re
import stat
from contextlib import suppress

LARGEST = 1_000_000
"""The largest number of bytes of settings that are read. A larger file is treated as if it contained a password."""

SETTINGS = ("config", "config.worktree", ".gitconfig")
"""The names of files that git reads settings from."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_BARE = re.compile(rb"^[ \t]*(?:\[core\][ \t]*)?bare[ \t]*(?:=[ \t]*\"?(?:true|yes|on|1)\b|$)", re.M | re.I)
_SECTION = re.compile(rb"^[ \t]*\[[a-z]", re.M | re.I)
_PASSWORD = re.compile(
    rb"""
    ://[^/\s:@]*:[^/\s]+@                    # https://name:password@host
    | \b(?:https?|ftps?)://[^/\s:@]{16,}@    # https://token@host: a name alone is shorter
    | ^[^\#;]*extraheader[ \t]*=[ \t]*[^\s]  # http.extraHeader = Authorization: ...
    | ^[^\#;]*helper[ \t]*=.*(?:password|token|secret)
    """,
    re.M | re.I | re.X,
)


def is_bare(folder: int) -> bool:
    """Report whether an open folder is a bare repository, which has no working tree and receives pushes. A repository
    with worktrees is not bare in this sense, because a commit in any worktree changes it.
    """
    try:
        kinds = [os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode for name in ("objects", "refs")]
        os.stat("HEAD", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    if not all(map(stat.S_ISDIR, kinds)) or _has_worktrees(folder):
        return False
    settings = _read(folder, "config")
    return settings is not None and bool(_BARE.search(settings))


def hides_password(folder: int, name: str) -> bool:
    """Report whether a file of an open folder contains git settings with a password, a token or an HTTP header for a
    server.
    """
    if name not in SETTINGS:
        return False
    settings = _read(folder, name)
    if settings is None:
        return False
    return len(settings) > LARGEST or bool(_SECTION.search(settings) and _PASSWORD.search(settings))


def _has_worktrees(folder: int) -> bool:
    with suppress(OSError):
        handle = os.open("worktrees", _FOLDER, dir_fd=folder)
        try:
            return bool(os.listdir(handle))  # noqa: PTH208  pathlib knows no handles
        finally:
            os.close(handle)
    return False


def _read(folder: int, name: str) -> bytes | None:
    """Return the first bytes of a file, at most one more than the limit; None when it is not a readable file."""
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(LARGEST + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else None
