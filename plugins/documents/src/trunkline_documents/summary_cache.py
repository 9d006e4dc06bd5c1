"""Summaries that were made once, in the home's cache: a file each, named by a hash of what it is the summary of."""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from trunkline.api.memory import Purge, Purger, RemainingCopy

MAX_SUMMARIES = 500


class SummaryCache:
    """The summaries of a home. A lost one is made again, so nothing here raises for a disk."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "cache" / "summaries"

    def get(self, *about: str) -> str | None:
        """The summary of these texts, if it was made before."""
        try:
            return self._file(about).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def put(self, summary: str, *about: str) -> None:
        """Keep a summary; the oldest go beyond ``MAX_SUMMARIES``. A reader sees the whole of it or nothing."""
        file = self._file(about)
        beside = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            beside.write_text(summary, encoding="utf-8")
            beside.replace(file)
            for old in sorted(self._folder.iterdir(), key=lambda one: one.stat().st_mtime)[:-MAX_SUMMARIES]:
                old.unlink()

    def clear(self) -> None:
        """Throw all of them away. Raises OSError."""
        for file in self._folder.iterdir() if self._folder.is_dir() else ():
            file.unlink(missing_ok=True)

    def _file(self, about: Sequence[str]) -> Path:
        digest = hashlib.sha256()
        for text in about:
            digest.update(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest())
        return self._folder / f"{digest.hexdigest()}.md"


class SummaryPurger(Purger):
    """Deletes all summaries at every purge, because a summary does not record whose words it holds."""

    name = "summaries"

    def __init__(self, summaries: SummaryCache) -> None:
        self._summaries = summaries

    async def erase(self, purge: Purge) -> Sequence[RemainingCopy]:
        """Throw them away."""
        self._summaries.clear()
        return ()
