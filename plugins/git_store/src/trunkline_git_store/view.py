"""The state of memory while changes are planned: the last commit, and over it the earlier plans of the
group."""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator

import pygit2

from trunkline.api.store import file_not_found, is_under, parents
from trunkline_git_store.repository import BlobEntry, Repository


class View(ABC):
    """Paths and their content, as the next change in line finds them."""

    @abstractmethod
    def entry(self, path: str) -> BlobEntry | None:
        """The file at a path; None when there is none."""

    @abstractmethod
    def blob(self, entry: BlobEntry) -> bytes:
        """The bytes of an entry."""

    @abstractmethod
    def files_under(self, path: str) -> dict[str, BlobEntry]:
        """All files of a folder (not the folder's own path), "" being the root."""

    def existing(self, path: str) -> BlobEntry:
        """The file at a path. Raises Refusal ``not_found``."""
        found = self.entry(path)
        if found is None:
            raise file_not_found(path)
        return found

    def data(self, path: str) -> bytes:
        """The bytes of the file at a path. Raises Refusal ``not_found``."""
        return self.blob(self.existing(path))

    def is_folder(self, path: str) -> bool:
        """Report whether files lie below a path."""
        return bool(self.files_under(path))

    def blocking_file(self, path: str) -> str | None:
        """A file that stands where a path needs a folder."""
        return next((above for above in parents(path) if self.entry(above) is not None), None)


class GitView(View):
    """The last commit of a repository, and over it what a group of changes did so far."""

    def __init__(self, repository: Repository, head: pygit2.Oid | None) -> None:
        self.head = head
        self.base = repository.snapshot(head)
        self.pending: dict[str, BlobEntry | None] = {}
        self._by_hand: dict[str, BlobEntry | None] = {}
        self._repository = repository

    def entry(self, path: str) -> BlobEntry | None:
        """The file at a path; None when there is none."""
        if path in self.pending:
            return self.pending[path]
        return self.base.entry(path)

    def blob(self, entry: BlobEntry) -> bytes:
        """The bytes of an entry."""
        return self._repository.data(entry.blob)

    def files_under(self, path: str) -> dict[str, BlobEntry]:
        """All files of a folder (not the folder's own path), "" being the root."""
        found = dict(self.base.files(path))
        for changed, entry in self.pending.items():
            if is_under(changed, path) and changed != path:
                if entry is None:
                    found.pop(changed, None)
                else:
                    found[changed] = entry
        return found

    def is_folder(self, path: str) -> bool:
        """Report whether files lie below a path."""
        if not any(is_under(changed, path) for changed in self.pending):
            return self.base.is_folder(path)
        return bool(self.files_under(path))

    def case_variant(self, path: str) -> str | None:
        """A file or folder whose name differs from the path's only in case or in how accents are written."""
        for below in (*parents(path), path):
            folder, _, name = below.rpartition("/")
            for other in self._names(folder):
                if other != name and _folded(other) == _folded(name):
                    return f"{folder}/{other}" if folder else other
        return None

    def _names(self, folder: str) -> Iterator[str]:
        start = len(folder) + 1 if folder else 0
        names = self.base.names(folder)
        names |= {changed[start:].split("/")[0] for changed in self.pending if is_under(changed, folder)}
        for name in names:
            path = f"{folder}/{name}" if folder else name
            if self.entry(path) is not None or self.is_folder(path):
                yield name

    def apply(self, changes: dict[str, BlobEntry | None]) -> None:
        """Take changes in."""
        self.pending.update(changes)

    def apply_external(self, changes: dict[str, BlobEntry | None]) -> None:
        """Take in changes that a person made: the files hold them already."""
        self.pending.update(changes)
        self._by_hand.update(changes)

    def files_to_write(self) -> Iterator[tuple[str, BlobEntry | None, BlobEntry | None]]:
        """The files that must change so that they hold what the group leaves: path, now, then."""
        for path, entry in self.pending.items():
            now = self._by_hand[path] if path in self._by_hand else self.base.entry(path)
            if now != entry:
                yield path, now, entry


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
