"""Files and conversations as they are now, and files as they were at a version. Reads; changes nothing."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import pygit2

from trunkline import MemoryFile
from trunkline.api.bus import Refusal
from trunkline.api.memory import ConversationSlice
from trunkline.api.store import AccessDenied, decode_text, file_not_found, normalize_path, path_refusal
from trunkline_git_store.components import StoreComponents
from trunkline_git_store.conversations import ConversationFile, parse
from trunkline_git_store.repository import Repository, commit_time, entry_at
from trunkline_git_store.worktree import FileStat


class StoreReader:
    """Reads the root of a store."""

    def __init__(self, parts: StoreComponents) -> None:
        self._worktree = parts.worktree
        self._stat_cache = parts.stat_cache
        self._conversations = parts.conversations

    def read(self, path: str) -> MemoryFile:
        """A file. Raises Refusal ``not_found`` or ``invalid_path``."""
        data, status = self._worktree.read(path)
        return MemoryFile(
            path=path,
            content=decode_text(path, data),
            hash=str(pygit2.hash(data)),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
        )

    def read_bytes(self, path: str) -> bytes:
        """A file's bytes. Raises Refusal ``not_found`` or ``invalid_path``."""
        return self._worktree.read(path)[0]

    def try_read(self, path: str) -> MemoryFile | Refusal:
        """A file, or why it cannot be read."""
        try:
            return self.read(normalize_path(path))
        except Refusal as refusal:
            return refusal
        except AccessDenied as shut:
            return path_refusal(shut.path, shut.reason)

    def conversation(self, places: Sequence[str], after: int) -> ConversationSlice:
        """The messages after ``after`` of the conversation that lies at one of some places."""
        for path in places:
            status = self._worktree.probe(path)
            if status is not None:
                return self._cached(path, status).slice(after)
        return ConversationSlice(exists=False)

    def _cached(self, path: str, status: os.stat_result) -> ConversationFile:
        blob = self._stat_cache.blob(path, FileStat.from_stat(status))
        known = self._conversations.get(str(blob)) if blob is not None else None
        return known or self._parsed(path)

    def _parsed(self, path: str) -> ConversationFile:
        data = self._worktree.read(path)[0]
        blob = str(pygit2.hash(data))
        known = self._conversations.get(blob)
        if known is None:
            known = parse(path, data)
            self._conversations.put(blob, known)
        return known


def read_version(repository: Repository, path: str, version: str) -> MemoryFile:
    """A file as it was. Raises Refusal ``not_found``."""
    commit = repository.version(version)
    entry = None if commit is None else entry_at(commit.tree, path)
    if commit is None:
        raise Refusal("not_found", f"Memory has no version {version[:64]!r}.")
    if entry is None:
        raise file_not_found(path)
    return MemoryFile(
        path=path,
        content=decode_text(path, repository.data(entry.blob)),
        hash=str(entry.blob),
        modified_at=commit_time(commit),
    )
