"""Writing objects of git as loose files that are not compressed. For what is soon packed, and changes all the time.

A folder's rows are mostly ids, which cannot be compressed: trying takes two thirds of the time of writing one, and
libgit2 always tries.
"""

import hashlib
import os
import time
import zlib
from contextlib import suppress
from pathlib import Path

import pygit2

_STORED = 0
"""zlib's level at which it only wraps."""
_TRIES = 5
"""A git that prunes beside us may clear a folder away between our making it and our putting something in."""


class LooseObjectWriter:
    """The folder ``objects`` of a repository. One thread at a time."""

    def __init__(self, objects: str) -> None:
        self._objects = objects

    def write(self, kind: bytes, data: bytes) -> pygit2.Oid:
        """Store an object (``kind`` is such as ``b"tree"``). It is whole when its name is there, and not yet synced.

        Raises:
            OSError: the disk refused.
        """
        whole = b"%b %d\0%b" % (kind, len(data), data)
        name = hashlib.sha1(whole, usedforsecurity=False)
        self._place(self.path(name.hexdigest()), zlib.compress(whole, _STORED))
        return pygit2.Oid(raw=name.digest())

    def path(self, name: str) -> str:
        """Return the path of an object while it is not packed."""
        return f"{self._objects}/{name[:2]}/{name[2:]}"

    def _place(self, file: str, data: bytes) -> None:
        # made beside the folders and not in them: in one of 256 it takes the file system four times as long
        scratch = (
            f"{self._objects}/tmp_obj_{os.getpid()}_{time.time_ns()}"  # git clears such names away itself
        )
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
            finally:
                os.close(handle)
            _rename(scratch, file)
        except BaseException:
            with suppress(OSError):
                Path(scratch).unlink()
            raise


def _rename(scratch: str, file: str) -> None:
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            Path(scratch).rename(file)
            return
        with suppress(FileExistsError):
            Path(file).parent.mkdir()
    Path(scratch).rename(file)
