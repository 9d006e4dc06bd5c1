"""The stat cache: the blob id and file status of each file when it was last read, so that unchanged files are
not read again. Derived data."""

import logging
from pathlib import Path

import msgspec
import pygit2

from trunkline_git_store.worktree import FileStat

_log = logging.getLogger(__name__)
_decoder = msgspec.msgpack.Decoder(dict[str, tuple[FileStat, bytes]])


class StatCache:
    """Path to stamp and blob. Kept in a file of the cache folder between runs; losing it costs only time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: dict[str, tuple[FileStat, pygit2.Oid]] = {}
        self._is_saved = True

    def load(self) -> None:
        """Take in what an earlier run saved."""
        if not self._file.exists():
            return
        try:
            saved = _decoder.decode(self._file.read_bytes())
            self._entries = {path: (stamp, pygit2.Oid(raw=raw)) for path, (stamp, raw) in saved.items()}
        except (OSError, msgspec.DecodeError, ValueError) as error:
            _log.warning("%s cannot be read and is made anew: %s", self._file, error)

    def save(self) -> None:
        """Save what is known; a failure is logged, since only time is lost."""
        if self._is_saved:
            return
        data = {path: (stamp, oid.raw) for path, (stamp, oid) in dict(self._entries).items()}
        scratch = self._file.with_suffix(".new")
        try:
            scratch.parent.mkdir(parents=True, exist_ok=True)
            scratch.write_bytes(msgspec.msgpack.encode(data))
            scratch.replace(self._file)
            self._is_saved = True
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._file, error)

    def blob(self, path: str, stamp: FileStat) -> pygit2.Oid | None:
        """The blob that a file in this state holds, if that is known."""
        known = self._entries.get(path)
        return known[1] if known is not None and known[0] == stamp else None

    def set(self, path: str, stamp: FileStat, blob: pygit2.Oid) -> None:
        """A file in this state holds this blob."""
        self._entries[path] = (stamp, blob)
        self._is_saved = False

    def forget(self, path: str) -> None:
        """The file is gone."""
        if self._entries.pop(path, None) is not None:
            self._is_saved = False
