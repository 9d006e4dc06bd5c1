"""``python -I -S file_masker.py PROCESS CORE``, a program of its own.

Goes into the namespaces of a sandbox that is made and has not begun, lays an empty file over every protected file of
its workspace, and makes bare repositories read-only.

It goes from handle to handle and follows no link, so that programs which run in the same workspace and swap folders for
links lead no mount astray. Every folder on the way to a protected file becomes a mount too, which nobody in the sandbox
can rename: so none of these programs moves a protected file away from under the eyes of who looks for it.
"""

import ctypes
import fcntl
import os
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NS_GET_USERNS = 0xB701
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
SETNS = {"x86_64": 308, "aarch64": 268}
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # the same on every architecture
OPEN_TREE_CLONE, RECURSIVE, EMPTY_PATH, CLOSE_ON_EXEC = 1, 0x8000, 0x1000, 0o2000000
FROM_EMPTY_PATH, TO_EMPTY_PATH = 0x04, 0x40
READ_ONLY = struct.pack("=4Q", 1, 0, 0, 0)
"""``struct mount_attr``: what is set, what is cleared, how it propagates, and whose identities it maps."""

EMPTY_PLACE = "/etc/.protected"
"""The path of the empty file in a sandbox."""

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Leaves with 0 when every protected file is hidden, and every bare repository locked."""
    process, core, repository = sys.argv[1:]
    sys.path.append(core)
    from trunkline.api import paths

    for name in dir(paths):
        getattr(paths, name)  # now: the namespaces of a sandbox have none of our modules

    enter_namespaces(process)
    empty = os.open(EMPTY_PLACE, os.O_PATH | os.O_NOFOLLOW)
    workspace = os.open("/workspace", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    WorkspaceMasker(empty, paths, repository).mask(workspace)


def enter_namespaces(process: str) -> None:
    """Into the namespaces of the process: of users first, which gives the right to the other."""
    mounts = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY)
    users = fcntl.ioctl(mounts, NS_GET_USERNS)
    for handle, kind in ((users, NEW_USER), (mounts, NEW_MOUNTS)):
        syscall(SETNS[os.uname().machine], handle, kind)


class WorkspaceMasker:
    """Masks the protected files of a workspace and locks its bare repositories. ``paths`` tells which these are;
    ``repository`` is the one that stays writable. An entry that another program removes meanwhile, at whatever moment,
    needs no mask: a file that is moved keeps its handle, and only one that is gone cannot be found."""

    def __init__(self, empty: int, paths, repository: str) -> None:  # type: ignore[no-untyped-def]
        self._empty = empty
        self._paths = paths
        self._repository = repository

    def mask(self, workspace: int) -> None:
        """Mask everything below an open folder.

        First everything is found, then each folder is mounted before what is in it. The other way round each folder
        would copy the mounts below it, and their number would double with every level.
        """
        self._mount(workspace, self._find(workspace, ()))

    def _find(self, folder: int, path: tuple[str, ...]) -> "Found":
        """Return the mounts for the files below a folder."""
        found: Found = {}
        for entry in _list(folder):
            with suppress(FileNotFoundError), _opened(entry, os.O_PATH | os.O_NOFOLLOW, folder) as handle:
                inside = (*path, entry)
                mode = os.fstat(handle).st_mode
                if stat.S_ISDIR(mode):
                    with _opened(".", os.O_RDONLY | os.O_DIRECTORY, handle) as opened:
                        locked = self._paths.is_bare(opened) and "/".join(inside) != self._repository
                        below = self._find(opened, inside)
                    if locked or below:
                        found[entry] = (locked, below)
                elif stat.S_ISREG(mode) and self._is_masked(folder, inside):
                    found[entry] = None
        return found

    def _mount(self, folder: int, files: "Found") -> None:
        for entry, inside in files.items():
            with suppress(FileNotFoundError), _opened(entry, os.O_PATH | os.O_NOFOLLOW, folder) as handle:
                mode = os.fstat(handle).st_mode
                if inside is None and stat.S_ISREG(mode):
                    os.close(bind_mount(self._empty, handle))
                elif inside is not None and stat.S_ISDIR(mode):
                    locked, below = inside
                    mount = bind_mount(handle, handle, RECURSIVE, read_only=locked)
                    with _opened(".", os.O_RDONLY | os.O_DIRECTORY, mount) as opened:
                        self._mount(opened, below)
                    os.close(mount)

    def _is_masked(self, folder: int, path: tuple[str, ...]) -> bool:
        return bool(
            self._paths.is_protected(("", *path)[-2:]) or self._paths.hides_password(folder, path[-1])
        )


Found = dict[str, "tuple[bool, Found] | None"]
"""By name: a folder, with whether it is locked and what is in it; or a file to mask (None)."""


def _list(folder: int) -> list[str]:
    with suppress(FileNotFoundError):
        return os.listdir(folder)
    return []


@contextmanager
def _opened(name: str, flags: int, folder: int) -> Iterator[int]:
    handle = os.open(name, flags, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def bind_mount(source: int, target: int, how: int = 0, *, read_only: bool = False) -> int:
    """Bind one place over another, both by their handles. A handle of what is then there."""
    tree = syscall(OPEN_TREE, source, b"", OPEN_TREE_CLONE | CLOSE_ON_EXEC | EMPTY_PATH | how)
    if read_only:
        syscall(MOUNT_SETATTR, tree, b"", EMPTY_PATH | how, READ_ONLY, len(READ_ONLY))
    syscall(MOVE_MOUNT, tree, b"", target, b"", FROM_EMPTY_PATH | TO_EMPTY_PATH)
    return tree


def syscall(number: int, *words: object) -> int:
    """A system call. Raises OSError."""
    done = int(libc.syscall(number, *words))
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return done


if __name__ == "__main__":
    main()
