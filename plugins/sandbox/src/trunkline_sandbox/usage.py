"""Measure a program's use of this machine: the memory of all its processes together, and the disk below its workspace.

Measures and decides nothing. Everything is read from /proc and the file system, so it may be some moments old.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

MIB = 1024 * 1024

MEMORY_FOLDERS = ("tmp", "dev/shm")
"""The folders of a program that are kept in memory (tmpfs)."""

SMALLEST_FILE = 4096
"""Bytes that a file counts at least: some file systems keep small ones in their tables, which fill up too."""

_GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError)


def processes(first: int) -> Iterator[int]:
    """The first process of a program and all that it began: nobody in its namespace can leave this tree.

    Raises OSError when that cannot be seen.
    """
    Path(
        f"/proc/{first}/task/{first}/children"
    ).stat()  # a kernel without it would show a program of one process
    found = [first]
    while found:
        process = found.pop()
        yield process
        with suppress(*_GONE):
            for thread in Path(f"/proc/{process}/task").iterdir():
                with suppress(*_GONE):
                    found += map(int, (thread / "children").read_text().split())


def memory_bytes(first: int) -> int:
    """Bytes of memory that a program takes: what its processes have to themselves, their shares of what they have
    together, and what lies in its folders in memory.

    Raises OSError when a process cannot be looked at.
    """
    total = sum(map(_resident, processes(first)))
    for folder in MEMORY_FOLDERS:
        with suppress(*_GONE):
            room = os.statvfs(f"/proc/{first}/root/{folder}")
            total += (room.f_blocks - room.f_bfree) * room.f_frsize
    return total


def _resident(process: int) -> int:
    kib = 0
    with suppress(*_GONE):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith(("Pss:", "SwapPss:")):
                kib += int(line.split()[1])
    return kib * 1024


def disk_bytes(workspace: Path, first: int | None, stopped: Callable[[], bool]) -> int:
    """Bytes on the disk below a workspace, and of files that were removed there and are held open by the program,
    where its ``first`` process is known.

    A file counts by the blocks that it has, not by the length that it claims. Ends early once ``stopped``.
    Raises OSError when a process cannot be looked at.
    """
    removed = 0 if first is None else _removed_bytes(first, workspace.stat().st_dev)
    return _folder_bytes(str(workspace), stopped) + removed


def _folder_bytes(folder: str, stopped: Callable[[], bool]) -> int:
    total, folders, known = 0, [folder], set[int]()
    while folders and not stopped():
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(*_GONE):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_nlink == 1 or found.st_ino not in known:
                        known.add(found.st_ino) if found.st_nlink > 1 else None
                        total += max(SMALLEST_FILE, found.st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    return total


def _removed_bytes(first: int, device: int) -> int:
    found: dict[int, int] = {}
    for process in processes(first):
        with suppress(*_GONE, PermissionError):  # one that hides its handles, as keepers of keys do
            for handle in Path(f"/proc/{process}/fd").iterdir():
                with suppress(*_GONE):
                    file = handle.stat()
                    if file.st_nlink == 0 and file.st_dev == device:
                        found[file.st_ino] = file.st_blocks * 512
    return sum(found.values())


def free_bytes(workspace: Path) -> int:
    """Bytes that are free on the workspace's file system."""
    room = os.statvfs(workspace)
    return room.f_bavail * room.f_frsize
