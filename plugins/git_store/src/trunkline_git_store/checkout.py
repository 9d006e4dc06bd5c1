"""Writes committed content into the files that a person sees, so that a kill at any instant can be repaired.

Before the branch moves, everything new lies finished in the stage folder, and a note (the *intent*) says which files
are about to change. After a kill, ``recover`` finds the note and brings those files to one state: the new one if the
branch had moved, the old one if not. A file that holds neither was edited by a person and is left.
"""

import logging

import msgspec
import pygit2

from trunkline.api.bus import Refusal
from trunkline_git_store.operations import FileAppend
from trunkline_git_store.repository import BlobEntry, Repository, entry_at
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.stat_cache import StatCache
from trunkline_git_store.view import GitView
from trunkline_git_store.worktree import StagedFile, Worktree

_log = logging.getLogger(__name__)


class Intent(msgspec.Struct, frozen=True):
    """The commit a checkout is for, and the files it changes, each with the blob before and after (None: no file)."""

    version: str
    files: dict[str, tuple[str | None, str | None]]


_intent = msgspec.json.Decoder(Intent)


class Checkout:
    """Writes one group's files: ``stage``, then (the branch moves) ``place``, or ``discard``."""

    def __init__(
        self, layout: RootLayout, worktree: Worktree, repository: Repository, stat_cache: StatCache
    ) -> None:
        self._layout = layout
        self._worktree = worktree
        self._repository = repository
        self._stat_cache = stat_cache
        self._files: dict[str, tuple[StagedFile, BlobEntry]] = {}
        self._removed: list[str] = []
        self._appends: dict[str, tuple[FileAppend, BlobEntry]] = {}
        self._intent: StagedFile | None = None

    def stage(
        self,
        version: pygit2.Oid,
        view: GitView,
        contents: dict[pygit2.Oid, bytes],
        appends: dict[str, FileAppend],
    ) -> list[str]:
        """Write all new files and the note aside; returns their paths, for syncing. Raises OSError."""
        files: dict[str, tuple[str | None, str | None]] = {}
        for path, before, after in view.files_to_write():
            files[path] = (_hex(before), _hex(after))
            self._stage_one(path, after, contents, appends.get(path))
        self._intent = self._worktree.stage(msgspec.json.encode(Intent(str(version), files)))
        staged = [self._intent, *(staged for staged, _ in self._files.values())]
        return [self._worktree.staged_path(one) for one in staged]

    def _stage_one(
        self, path: str, after: BlobEntry | None, contents: dict[pygit2.Oid, bytes], append: FileAppend | None
    ) -> None:
        if after is None:
            self._removed.append(path)
        elif append is not None:
            self._appends[path] = (append, after)
        else:
            data = contents.get(after.blob)
            data = self._repository.data(after.blob) if data is None else data
            self._files[path] = (self._worktree.stage(data, executable=after.executable), after)

    def write_intent(self) -> None:
        """Write the intent. From here on ``recover`` repairs a kill."""
        assert self._intent is not None
        (self._layout.stage / self._intent.name).rename(self._layout.intent)

    def place(self) -> None:
        """Change the files and bring them onto the disk. Raises OSError."""
        # What goes makes room first: a file may stand where another one needs a folder. Staged files are renamed into
        # place, so each is whole. Appends alone change a file where it lies: a crash in the middle of one leaves a
        # beginning of the new content, which ``recover`` recognises. The note goes when all folders are on disk: until
        # then ``recover`` places the rest after a crash.
        for path in self._removed:
            self._worktree.remove(path)
            self._stat_cache.forget(path)
        for path, (staged, entry) in self._files.items():
            self._worktree.place(staged, path)
            self._stat_cache.set(path, staged.stamp, entry.blob)
        for path, (append, entry) in self._appends.items():
            self._stat_cache.set(path, self._worktree.append(path, append.size, append.tail), entry.blob)
        self._worktree.sync_folders()
        self._layout.intent.unlink(missing_ok=True)

    def discard(self) -> None:
        """Drop what was staged."""
        for staged, _ in self._files.values():
            self._worktree.discard(staged)
        if self._intent is not None:
            self._worktree.discard(self._intent)


def recover(layout: RootLayout, worktree: Worktree, repository: Repository, stat_cache: StatCache) -> None:
    """Finish or undo the checkout that was interrupted, if there was one. Raises OSError."""
    try:
        text = layout.intent.read_bytes()
    except FileNotFoundError:
        return
    try:
        _Recovery(worktree, repository, stat_cache).recover(_intent.decode(text))
    except msgspec.DecodeError as error:
        _log.warning("%s cannot be read and is dropped: %s", layout.intent, error)
    worktree.sync_folders()
    layout.intent.unlink()


class _Recovery:
    """Brings the files of an intent to one state."""

    def __init__(self, worktree: Worktree, repository: Repository, stat_cache: StatCache) -> None:
        self._worktree = worktree
        self._repository = repository
        self._stat_cache = stat_cache

    def recover(self, intent: Intent) -> None:
        """All files of the intent."""
        # The branch says which way: it moves by one atomic write between the note and the first file. The commit may
        # lie behind the branch's head, because a person may have committed since. Then a file is brought to what head
        # has. A crash in here changes nothing about the answer, so the next start does the same again; the note goes
        # last.
        head = self._repository.head()
        moved = self._repository.includes(head, intent.version)
        tree = self._repository.tree(head)
        # What goes makes room first: a file may have stood where another one needs a folder.
        for path, (before, after) in sorted(intent.files.items(), key=lambda one: one[1][moved] is not None):
            committed = entry_at(tree, path)
            if moved:
                wanted = committed
            else:
                executable = committed is not None and committed.executable
                wanted = None if before is None else BlobEntry(pygit2.Oid(hex=before), executable)
            self._recover_file(path, (before, after), wanted)

    def _recover_file(
        self, path: str, states: tuple[str | None, str | None], entry: BlobEntry | None
    ) -> None:
        try:
            data: bytes | None = self._worktree.read(path)[0]
        except Refusal as refusal:
            if refusal.code != "not_found":
                return  # a person put something else there
            data = None
        if data is None and entry is None:
            return self._worktree.remove_empty_parents(path)
        # Only content that this checkout put there, or was to replace, is overwritten. Anything else a person wrote
        # since, and the next scan for edits by hand commits it.
        now = None if data is None else str(pygit2.hash(data))
        if now == _hex(entry) or not (now in states or _is_partial_append(self._repository, states, data)):
            return
        if entry is None:
            self._worktree.remove(path)
            self._stat_cache.forget(path)
        else:
            self._restore(path, entry)

    def _restore(self, path: str, entry: BlobEntry) -> None:
        staged = self._worktree.stage(self._repository.data(entry.blob), executable=entry.executable)
        self._worktree.sync_staged(staged)
        self._worktree.place(staged, path)
        self._stat_cache.set(path, staged.stamp, entry.blob)


def _is_partial_append(
    repository: Repository, states: tuple[str | None, str | None], data: bytes | None
) -> bool:
    """Report whether a file is on its way from the old to the longer new content."""
    old, new = states
    if data is None or old is None or new is None:
        return False
    try:
        before, after = (repository.data(pygit2.Oid(hex=state)) for state in (old, new))
    except KeyError:  # the new blob was not yet on disk, so nothing was placed
        return False
    return data.startswith(before) and after.startswith(data)


def _hex(entry: BlobEntry | None) -> str | None:
    return None if entry is None else str(entry.blob)
