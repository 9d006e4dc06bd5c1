"""Finds files by a part of their path, for the completion of ``@``."""

import os
from time import monotonic

from trunkline_terminal.text_match import best_matches

MOST_FILES, MOST_FOUND = 5_000, 30
"""The largest number of files that are looked at, and that are offered."""

FRESH_SECONDS = 5.0
"""Seconds for which the list of files is used again."""

SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})


class FileFinder:
    """The files below the working folder, without hidden ones and those of installed packages."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._read_at = float("-inf")

    def find(self, words: str) -> list[str]:
        """Return the paths that match, the best first."""
        if monotonic() - self._read_at > FRESH_SECONDS:
            self._files, self._read_at = _files(), monotonic()
        return [self._files[number] for number in best_matches(words, self._files)[:MOST_FOUND]]


def _files() -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk("."):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in SKIPPED)
        prefix = os.path.relpath(folder) + os.sep if folder != "." else ""
        found += [prefix + name for name in sorted(names) if not name.startswith(".")]
        if len(found) >= MOST_FILES:
            break
    return found[:MOST_FILES]
