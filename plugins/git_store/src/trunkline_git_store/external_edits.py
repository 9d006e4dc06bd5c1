"""Finds and reads external edits: files that a person changed since the last commit. Other code commits
them."""

import logging
import os
import stat
from collections.abc import Iterator

import pygit2

from trunkline.api.bus import Refusal
from trunkline.api.store import AccessDenied, is_normalized
from trunkline_git_store.file_stability import StabilityTracker
from trunkline_git_store.repository import BlobEntry, Repository, Snapshot
from trunkline_git_store.stat_cache import StatCache
from trunkline_git_store.worktree import FileStat, Worktree

_log = logging.getLogger(__name__)

MAX_FILE_BYTES = 100 * 1024 * 1024
"""Files above this size (bytes) that somebody put there by hand stay out of history."""


class ExternalEditScanner:
    """Compares files with a commit's."""

    def __init__(self, worktree: Worktree, repository: Repository, stamps: StatCache) -> None:
        self._worktree = worktree
        self._repository = repository
        self._stamps = stamps
        self._stability = StabilityTracker()
        self._skipped: dict[str, str] = {}

    def scan(self, base: Snapshot, path: str, *, at_rest: bool = False) -> dict[str, BlobEntry | None]:
        """Return the differences at a path, or in the folder that it is; "" is everything. New content is
        stored as blobs.

        With ``at_rest`` only files that were the same at two checks are included: a file that is being
        written is left for a later check.
        """
        if path and not base.is_folder(path):
            status = self._worktree.status(path)
            if status is None or stat.S_ISREG(status.st_mode):
                return self._scan_file(path, base.entry(path), status, at_rest)
        return self._scan_folder(base, path, at_rest)

    def unstable_files(self) -> frozenset[str]:
        """The files that were left, because they were being written when somebody last looked for those at rest."""
        return self._stability.unstable_files()

    def is_being_written(self, path: str) -> bool:
        """Report whether a file was being written when it was last looked at."""
        return self._stability.is_being_written(path)

    def _scan_folder(self, base: Snapshot, prefix: str, at_rest: bool) -> dict[str, BlobEntry | None]:
        committed = dict(base.files(prefix))
        found: dict[str, BlobEntry | None] = {}
        seen: set[str] = set()
        for path, status in self._files(prefix):
            seen.add(path)
            found.update(self._scan_file(path, committed.get(path), status, at_rest))
        for path in committed.keys() - seen:
            if is_normalized(path):
                found.update(self._unseen(path, committed[path], at_rest))
        if not prefix:
            self._stability.retain(seen, committed)
        return found

    def _files(self, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
        """The files at or under a path."""
        status = self._worktree.status(prefix) if prefix else None
        if status is not None and stat.S_ISREG(status.st_mode):
            yield prefix, status
        else:
            yield from self._worktree.files(prefix)

    def _unseen(self, path: str, committed: BlobEntry, at_rest: bool) -> dict[str, BlobEntry | None]:
        """A file that is in no folder that we may look into: it is gone, or nobody can tell."""
        try:
            status = self._worktree.status(path)
        except AccessDenied as shut:
            self._skip(shut.path, "it cannot be opened")
            return {}
        return self._scan_file(path, committed, status, at_rest)

    def _scan_file(
        self, path: str, committed: BlobEntry | None, status: os.stat_result | None, at_rest: bool
    ) -> dict[str, BlobEntry | None]:
        if status is None:
            gone = committed is not None and (not at_rest or self._stability.observe(path, None))
            return {path: None} if gone else {}
        if not stat.S_ISREG(status.st_mode):
            return {}
        blob = self._cached_blob(path, committed, status)
        if blob is None or committed is None or blob != committed.blob:
            blob = self._changed_blob(path, committed, status, blob, at_rest)
        if blob is None:
            return {}
        if committed is not None and blob == committed.blob:
            self._stability.forget(path)
            return {}
        executable = bool(status.st_mode & stat.S_IXUSR) if committed is None else committed.executable
        return {path: BlobEntry(blob, executable)}

    def _cached_blob(
        self, path: str, committed: BlobEntry | None, status: os.stat_result
    ) -> pygit2.Oid | None:
        """The blob of a file that was not touched since it was read, if the repository holds it (another may not)."""
        blob = self._stamps.blob(path, FileStat.from_stat(status))
        if blob is None or (committed is not None and blob == committed.blob):
            return blob
        return blob if blob in self._repository.git else None

    def _changed_blob(
        self,
        path: str,
        committed: BlobEntry | None,
        status: os.stat_result,
        known: pygit2.Oid | None,
        at_rest: bool,
    ) -> pygit2.Oid | None:
        """The blob of a file that may differ from what is committed; None when it is to be left alone, or for now."""
        if committed is None and self._ignored(path):
            return None
        if status.st_size > MAX_FILE_BYTES:
            self._skip(path, f"it is larger than {MAX_FILE_BYTES} bytes")
            return None
        if at_rest and not self._stability.observe(path, FileStat.from_stat(status)):
            return None
        return known or self._read(path, status, at_rest)

    def _read(self, path: str, seen: os.stat_result, at_rest: bool) -> pygit2.Oid | None:
        try:
            data, status = self._worktree.read(path)
            after = self._worktree.status(path)
        except (Refusal, AccessDenied) as error:
            self._skip(path, "it cannot be opened" if isinstance(error, AccessDenied) else error.message)
            return None
        now = None if after is None else FileStat.from_stat(after)
        if at_rest and now != FileStat.from_stat(seen) and not self._stability.is_being_written(path):
            self._stability.observe(path, now)  # somebody began to write it while it was read
            return None
        self._skipped.pop(path, None)
        blob = self._repository.write_blob(data)
        self._stamps.set(path, FileStat.from_stat(status), blob)
        return blob

    def _skip(self, path: str, why: str) -> None:
        """Say that what a file holds does not come into history: once, and again when the reason is another one, for it
        is looked at again and again."""
        if self._skipped.get(path) != why:
            self._skipped[path] = why
            _log.warning("%s is not recorded in history: %s", path, why)

    def _ignored(self, path: str) -> bool:
        try:
            return self._repository.git.path_is_ignored(path)
        except pygit2.GitError as error:
            _log.warning("git cannot say whether it ignores %s, so it is committed: %s", path, error)
            return False
