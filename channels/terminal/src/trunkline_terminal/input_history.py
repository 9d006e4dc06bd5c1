"""The history of the input, which is stored in the home."""

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory


class PrivateHistory(FileHistory):
    """prompt_toolkit's history file, without what begins with a space."""

    def store_string(self, string: str) -> None:
        if not string.startswith(" "):
            super().store_string(string)


def open_history(path: Path) -> History:
    """Return the input history at this path, or one in main memory when the file cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return PrivateHistory(str(path))


def earlier_inputs(history: History) -> list[str]:
    """Return what was entered, also in earlier sessions, the newest first and each once."""
    return list(dict.fromkeys(history.load_history_strings()))
