"""The readers of all plugins. A file is read by the reader with the longest suffix that matches its name; of several
such readers the first in load order reads it.
"""

from collections.abc import Iterable

from trunkline.contracts.documents.reader import Reader


class ReaderRegistry:
    """The readers of all plugins."""

    def __init__(self, readers: Iterable[Reader] = ()) -> None:
        self._by_suffix: dict[str, Reader] = {}
        for reader in readers:
            for suffix in reader.suffixes:
                self._by_suffix.setdefault(suffix.lower(), reader)

    def reader_for(self, name: str) -> Reader | None:
        """Return the reader for a file of this name; None if there is none, so that the file is read as text or not at
        all.
        """
        folded = name.lower()
        fitting = [suffix for suffix in self._by_suffix if folded.endswith(suffix)]
        return self._by_suffix[max(fitting, key=len)] if fitting else None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return all suffixes that readers handle, sorted."""
        return tuple(sorted(self._by_suffix))
