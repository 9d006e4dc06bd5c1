"""Checks a memory root for every kind of damage, in order; repairs what can be repaired, and reports it.

Whoever examines holds the root and is its only writer. Nothing that is broken is deleted: it is put aside.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import apsw
import pygit2

from trunkline import TrunklineError
from trunkline.api.store import MemoryFinding
from trunkline_git_store.fsck.damaged_files import DamagedFiles
from trunkline_git_store.fsck.object_check import broken_loose, broken_packs, packs_without_index
from trunkline_git_store.fsck.reachability import LostObject, check_reachability, tree_ids
from trunkline_git_store.fsck.repair import restore_objects, store_files
from trunkline_git_store.fsync import Syncer
from trunkline_git_store.lock import RootLock
from trunkline_git_store.repository import Repository
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.worktree import Worktree

Status = Literal["ok", "repaired", "warning", "error"]

LOCKS = ("index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/*.lock", "gc.pid")
LEFTOVERS = (
    "objects/??/tmp_obj_*",
    "objects/tmp_object_git2_*",
    "objects/pack/tmp_*",
    "objects/pack/*_git2_*",
)
STALE_SECONDS = 600.0
"""Seconds after which a lock or a file on its way belongs to nobody any more."""

BACKUP = (
    "Restore lost objects from a backup or another copy: git -C <memory root> fetch <copy>, then check again."
)
SHOWN = 5

BRANCH = "refs/heads/main"
HEAD = f"ref: {BRANCH}\n"
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
"""The content of git's own files that are recreated."""

DATABASES = ("memory.db", "memory-history.db")
"""The derived files in the cache folder."""

NEW_ROOT_MESSAGE = "Continue from the files: folders of the last version are lost\n"


class IntegrityCheck:
    """A check of a memory root. With ``repair`` False it changes nothing."""

    def __init__(
        self, layout: RootLayout, worktree: Worktree, databases: tuple[Path, ...], *, repair: bool
    ) -> None:
        self._layout = layout
        self._worktree = worktree
        self._databases = databases
        self._repair = repair
        self._objects = layout.git / "objects"
        self._damaged_files = DamagedFiles(layout)

    def run(self) -> list[MemoryFinding]:
        """All findings, in order."""
        found = [self._leftovers(), self._locks(), self._loose(), self._packs(), self._repository()]
        history = self._history() if found[-1].status in ("ok", "repaired") else ()
        return [*found, *history, *self._derived()]

    # Files ---------------------------------------------------------------------------------------------------

    def _leftovers(self) -> MemoryFinding:
        """git.litter: half-written files of processes that were killed."""
        found = [
            file
            for pattern in LEFTOVERS
            for file in self._layout.git.glob(pattern)
            if _age(file) > STALE_SECONDS
        ]
        if not found:
            return _found("git.litter", "ok", "There are no half-written files")
        if self._repair:
            for file in found:
                file.unlink(missing_ok=True)
        return self._repaired("git.litter", f"{len(found)} half-written files of killed processes", "removed")

    def _locks(self) -> MemoryFinding:
        """git.locks: another git process that holds the repository."""
        found = [file for pattern in LOCKS for file in self._layout.git.glob(pattern)]
        stale = [file for file in found if _age(file) > STALE_SECONDS]
        if stale:
            if self._repair:
                for file in stale:
                    file.unlink(missing_ok=True)
            return self._repaired("git.locks", f"{_names(stale)}, older than ten minutes", "removed")
        if found:
            said = f"Another git process holds the repository ({_names(found)}); writes continue where its locks allow"
            return _found(
                "git.locks",
                "warning",
                said,
                "Wait for it, or end it; a lock without an owner is removed later.",
            )
        return _found("git.locks", "ok", "No other git process holds the repository")

    # Objects -------------------------------------------------------------------------------------------------

    def _loose(self) -> MemoryFinding:
        """git.objects: each loose object holds what its name says."""
        found = list(broken_loose(self._objects))
        if not found:
            return _found("git.objects", "ok", "Every loose object is intact")
        if self._repair:
            for file in found:
                self._damaged_files.move_object(file)
        return self._repaired("git.objects", f"{len(found)} loose objects are broken", self._put)

    def _packs(self) -> MemoryFinding:
        """git.packs: each pack is whole and has its index."""
        found = [*broken_packs(self._objects), *packs_without_index(self._objects)]
        if not found:
            return _found("git.packs", "ok", "Every pack is intact")
        if self._repair:
            for pack in dict.fromkeys(found):
                self._damaged_files.move_pack(pack)
        return self._repaired("git.packs", f"{len(set(found))} packs are broken or half-written", self._put)

    @property
    def _put(self) -> str:
        return f"put aside in {self._damaged_files.folder}"

    # The repository ------------------------------------------------------------------------------------------

    def _repository(self) -> MemoryFinding:
        """git.repository: git can open it, and it is on a branch."""
        trouble = self._trouble()
        if not trouble:
            return _found("git.repository", "ok", "The repository can be opened")
        if not self._repair:
            return self._repaired("git.repository", trouble, "")
        for file, text in ((self._layout.git / "config", CONFIG), (self._layout.git / "HEAD", HEAD)):
            if self._trouble() and (file.name == "config" or (self._layout.git / BRANCH).is_file()):
                self._replace(file, text)
        if left := self._trouble():
            return _found("git.repository", "error", left, BACKUP)
        return self._repaired(
            "git.repository", trouble, f"created again; the old content is in {self._damaged_files.folder}"
        )

    def _trouble(self) -> str:
        """Return why the repository cannot be used; "" when it can. Objects are not checked."""
        try:
            repository = Repository(self._layout.root)
            try:
                repository.branch()
                return ""
            finally:
                repository.close()
        except (KeyError, ValueError, OSError, pygit2.GitError, TrunklineError) as error:
            return f"{self._layout.git} cannot be opened: {error}"

    def _replace(self, file: Path, text: str) -> None:
        if file.exists():
            self._damaged_files.move_object(file)
        file.write_text(text)

    # History -------------------------------------------------------------------------------------------------

    def _history(self) -> Iterator[MemoryFinding]:
        """git.history: everything that the branch needs is there."""
        if not self._repair and self._broken():
            yield _found(
                "git.history", "warning", "Not checked: objects are broken.", "Run it without --no-repair."
            )
            return
        commits, objects, lost = self._reach()
        healed = 0
        if lost and self._repair:
            restore_objects(self._layout, self._worktree, self._damaged_files.folder)
            before = {one.id for one in lost}
            commits, objects, lost = self._reach()
            healed = len(before - {one.id for one in lost})
        if healed:
            said = f"{healed} lost objects were restored from the files and from readable objects"
            yield _found("git.history", "repaired", said)
        if any(one.path == "" and str(one.id) == one.version for one in lost):
            yield self._branch()
            commits, objects, lost = self._reach()
        if (found := self._last_version(lost)) is not None:
            yield found
            commits, objects, lost = self._reach()
        yield _reachability_finding(commits, objects, lost)

    def _last_version(self, lost: list[LostObject]) -> MemoryFinding | None:
        """git.files: the last version can be read, so that changes can be made to it."""
        repository = Repository(self._layout.root)
        try:
            head = _head(repository)
            needed = {oid.raw for oid in tree_ids(repository, head)} if head is not None else set()
            if head is None or not any(one.id.raw in needed for one in lost):
                return None
            said = (
                f"Folders of the last version {str(head)[:10]} are lost, so nothing could be written to them"
            )
            if self._repair:
                entries = store_files(repository, self._worktree)
                tree = repository.write_tree(None, entries)
                repository.advance_branch(
                    head, repository.write_commit(head, tree, "trunkline", NEW_ROOT_MESSAGE)
                )
            return self._repaired("git.files", said, "a commit was made of the files as they are now")
        finally:
            repository.close()

    def _broken(self) -> bool:
        return any(True for _ in broken_loose(self._objects))

    def _reach(self) -> tuple[int, int, list[LostObject]]:
        repository = Repository(self._layout.root)
        try:
            return check_reachability(repository, _head(repository))
        finally:
            repository.close()

    def _branch(self) -> MemoryFinding:
        """git.branch: the branch ends at a commit that can be read."""
        repository = Repository(self._layout.root)
        try:
            head = _head(repository)
            if head is None or _readable_object(repository, head):
                return _found("git.branch", "error", "A commit in the middle of history is lost.", BACKUP)
            target = next(
                (oid for oid in self._reflog(repository.branch()) if _readable_object(repository, oid)), None
            )
            if target is None:
                return _found(
                    "git.branch",
                    "error",
                    f"The last commit {head} is lost, and no earlier one is known.",
                    BACKUP,
                )
            if self._repair:
                repository.git.references.create(repository.branch(), target, force=True)
                self._put_logs_aside(repository.branch())
            said = f"The last commit {str(head)[:10]} is lost; the files stay, and become the owner's edits"
            return self._repaired("git.branch", said, f"the branch was reset to {str(target)[:10]}")
        finally:
            repository.close()

    def _put_logs_aside(self, branch: str) -> None:
        """Git's logs of the branch name the lost commit, which its own check takes for damage."""
        for log in (self._layout.git / "logs" / "HEAD", self._layout.git / "logs" / branch):
            if log.exists():
                self._damaged_files.move_object(log)

    def _reflog(self, branch: str) -> Iterator[pygit2.Oid]:
        """Yield the former commits of the branch, newest first, from git's reflog."""
        file = self._layout.git / "logs" / branch
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        for line in reversed(lines):
            for name in reversed(line.split(" ")[:2]):
                if len(name) == 40 and name.strip("0123456789abcdef") == "" and name.strip("0"):
                    yield pygit2.Oid(hex=name)

    # Derived files -------------------------------------------------------------------------------------------

    def _derived(self) -> Iterator[MemoryFinding]:
        """index: each derived database can be read."""
        for file in self._databases:
            name = f"index.{file.stem}"
            if not file.exists() or _readable(file):
                yield _found(
                    name,
                    "ok",
                    f"{file.name} can be read" if file.exists() else f"{file.name} is made when needed",
                )
                continue
            if self._repair:
                for suffix in ("", "-wal", "-shm"):
                    file.with_name(file.name + suffix).unlink(missing_ok=True)
            yield self._repaired(name, f"{file.name} is damaged", "removed; it is rebuilt from history")

    def _repaired(self, name: str, what: str, how: str) -> MemoryFinding:
        if self._repair:
            return _found(name, "repaired", f"{what}: {how}")
        return _found(name, "warning", what, "Run it without --no-repair to repair that.")


def _reachability_finding(commits: int, objects: int, lost: list[LostObject]) -> MemoryFinding:
    if not lost:
        return _found(
            "git.history", "ok", f"{commits} commits and all of their {objects} objects can be read"
        )
    places = [f"{one.path or 'the commit'} in {one.version[:10]}" for one in lost[:SHOWN]]
    more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    said = f"{len(lost)} objects are lost: {', '.join(places)}{more}"
    return _found("git.history", "error", said, BACKUP)


def _head(repository: Repository) -> pygit2.Oid | None:
    try:
        return repository.head()
    except (KeyError, ValueError, pygit2.GitError, TrunklineError):
        return None


def _readable_object(repository: Repository, oid: pygit2.Oid) -> bool:
    try:
        repository.git.read(oid)
    except (KeyError, ValueError, pygit2.GitError):
        return False
    return True


def _readable(file: Path) -> bool:
    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return False
    try:
        return bool(connection.pragma("quick_check") == "ok")
    except apsw.Error:
        return False
    finally:
        connection.close()


def _found(id: str, status: Status, summary: str, hint: str = "") -> MemoryFinding:
    return MemoryFinding(id=id, status=status, summary=summary, hint=hint)


def _names(files: list[Path]) -> str:
    return ", ".join(file.name for file in files)


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def check_root(root: Path, cache: Path, *, repair: bool) -> tuple[MemoryFinding, ...]:
    """Look at everything in a root that no memory worker holds, also one that none can open.

    Raises:
        StorageError: another process holds the root.
        OSError: the root cannot be read or written.
    """
    layout = RootLayout(root.resolve())
    if not layout.git.is_dir():
        said = f"{root} gets its history on the first start"
        return (MemoryFinding(id="git.history", status="ok", summary=said),)
    layout.stage.mkdir(parents=True, exist_ok=True)
    lock, syncer = RootLock(layout.lock), Syncer(enabled=False)
    lock.acquire(layout.root)
    worktree = Worktree(layout.root, layout.stage, syncer)
    try:
        databases = tuple(cache / name for name in DATABASES)
        return tuple(IntegrityCheck(layout, worktree, databases, repair=repair).run())
    finally:
        worktree.close()
        syncer.close()
        lock.release()
