"""What a person changed by hand since the last commit. Finds and reads it; others commit it."""

import logging
import os
import stat
from collections.abc import Iterator

import pygit2

from trunkline.memory.paths import plain
from trunkline.memory.repository import Entry, Repository, Snapshot
from trunkline.memory.stamps import Stamps
from trunkline.memory.worktree import Stamp, Worktree
from trunkline_bus import Refusal

_log = logging.getLogger(__name__)

LARGEST = 100 * 1024 * 1024
"""Files above this size (bytes) that somebody put there by hand stay out of history."""


class Drift:
    """Compares files with a commit's."""

    def __init__(self, worktree: Worktree, repository: Repository, stamps: Stamps) -> None:
        self._worktree = worktree
        self._repository = repository
        self._stamps = stamps

    def at(self, base: Snapshot, path: str) -> dict[str, Entry | None]:
        """What differs at a path, or in the folder that it is; "" is everything. New content is stored as blobs."""
        if path and not base.is_folder(path):
            status = self._worktree.status(path)
            if status is None or stat.S_ISREG(status.st_mode):
                return self._one(path, base.entry(path), status)
        return self._all(base, path)

    def _all(self, base: Snapshot, prefix: str) -> dict[str, Entry | None]:
        committed = dict(base.files(prefix))
        found: dict[str, Entry | None] = {}
        seen: set[str] = set()
        for path, status in self._files(prefix):
            seen.add(path)
            found.update(self._one(path, committed.get(path), status))
        for path in committed.keys() - seen:
            if plain(path):
                found.update(self._one(path, committed[path], self._worktree.status(path)))
        return found

    def _files(self, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
        """The files at or under a path."""
        status = self._worktree.status(prefix) if prefix else None
        if status is not None and stat.S_ISREG(status.st_mode):
            yield prefix, status
        else:
            yield from self._worktree.files(prefix)

    def _one(
        self, path: str, committed: Entry | None, status: os.stat_result | None
    ) -> dict[str, Entry | None]:
        if status is None:
            return {} if committed is None else {path: None}
        if not stat.S_ISREG(status.st_mode):
            return {}
        blob = self._known(path, committed, status) or self._look(path, committed, status)
        if blob is None or (committed is not None and blob == committed.blob):
            return {}
        executable = bool(status.st_mode & stat.S_IXUSR) if committed is None else committed.executable
        return {path: Entry(blob, executable)}

    def _known(self, path: str, committed: Entry | None, status: os.stat_result) -> pygit2.Oid | None:
        """The blob of a file that was not touched since it was read, if the repository holds it (another may not)."""
        blob = self._stamps.blob(path, Stamp.of(status))
        if blob is None or (committed is not None and blob == committed.blob):
            return blob
        return blob if blob in self._repository.git else None

    def _look(self, path: str, committed: Entry | None, status: os.stat_result) -> pygit2.Oid | None:
        """The blob of a file, read now; None when it is to be left alone."""
        if committed is None and self._ignored(path):
            return None
        if status.st_size > LARGEST:
            _log.warning("%s is larger than %d bytes and stays out of history", path, LARGEST)
            return None
        try:
            data, status = self._worktree.read(path)
        except (Refusal, PermissionError) as error:
            _log.warning("%s stays out of history: %s", path, error)
            return None
        blob = self._repository.write_blob(data)
        self._stamps.set(path, Stamp.of(status), blob)
        return blob

    def _ignored(self, path: str) -> bool:
        try:
            return self._repository.git.path_is_ignored(path)
        except pygit2.GitError as error:
            _log.warning("whether git is to ignore %s cannot be told, so it is kept: %s", path, error)
            return False
