"""The input history: lines typed in earlier sessions, in a file that only their author can read. Lines that begin with
a space are not recorded."""

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


class PrivateHistory(FileHistory):
    """prompt_toolkit's history file, without what begins with a space."""

    def store_string(self, string: str) -> None:
        if not string.startswith(" "):
            super().store_string(string)


def open_history(path: Path) -> History:
    """The history at this path, or one that lasts for this sitting where the file cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return PrivateHistory(str(path))
