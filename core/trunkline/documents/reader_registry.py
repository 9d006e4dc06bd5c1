"""Which reader reads a file: the first, in load order, whose suffix its name ends with; the longest suffix counts."""

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
        """The reader for a file of this name; None when it is read as the text that it is, or not at all."""
        folded = name.lower()
        fitting = [suffix for suffix in self._by_suffix if folded.endswith(suffix)]
        return self._by_suffix[max(fitting, key=len)] if fitting else None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """All suffixes that something reads, sorted."""
        return tuple(sorted(self._by_suffix))
