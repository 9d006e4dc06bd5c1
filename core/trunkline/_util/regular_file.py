"""Reads a file that may come from a person. Only regular files are read, also through a link, so a read never blocks
on a pipe.
"""

import errno
import os
import stat
from pathlib import Path


def read_regular(file: Path) -> bytes:
    """Return the content of a file. Raises OSError, also for a pipe, a device or a folder."""
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb", closefd=True) as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        return opened.read()
