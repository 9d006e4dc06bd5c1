"""Makes commits and files of a group of operations: the one writer. Runs in one thread at a time, off the event loop.

The order makes every step safe to die in: plan → blobs, trees and commits → stage files → sync all → note the intent →
move the branch → place files → acknowledge.
"""

import errno
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pygit2

from trunkline.api.bus import Refusal
from trunkline.api.memory import OWNER
from trunkline.api.store import (
    AccessDenied,
    Change,
    MemoryChanged,
    MemoryRule,
    apply_rules,
    block_files,
    missing_blocks,
    parents,
)
from trunkline_git_store.checkout import Checkout, recover
from trunkline_git_store.commit_batch import CommitBatch, CommitDraft, CommitOrigin
from trunkline_git_store.external_edits import ExternalEditScanner
from trunkline_git_store.fsync import Syncer
from trunkline_git_store.operations import (
    ChangePlan,
    CommitExternalEdits,
    Content,
    Entries,
    FileAppend,
    WriteOperation,
)
from trunkline_git_store.repository import BlobEntry, HeadLocked, HeadMoved, Repository, error_text
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.stat_cache import StatCache
from trunkline_git_store.view import GitView, View
from trunkline_git_store.worktree import Worktree

_log = logging.getLogger(__name__)

ATTEMPTS = 20
MAX_RETRY_DELAY = 0.2
"""Seconds between two attempts while another git process holds the branch; all of them take 3."""
VANISHED_FILE_ATTEMPTS = 5
"""Attempts while files of the repository vanish under us: another git packs them and clears empty folders away."""

EXTERNAL_EDIT_REASON = "Edited by hand"
UNSTABLE_EDIT_REASON = "Edited by hand, while it was being written"


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The result of an operation: the version that holds it, and the plan's count."""

    version: str
    count: int = 0


@dataclass(slots=True)
class CommitResult:
    """The result of a group: one outcome or refusal for each operation, in order, and the commits made."""

    outcomes: list[OperationResult | Refusal]
    commits: list[MemoryChanged] = field(default_factory=list)


@dataclass(slots=True)
class _PlannedOperation:
    """An operation that can be carried out: its commit, and what to do once that is made."""

    plan: ChangePlan
    entries: Entries
    draft: CommitDraft | None


class _FreedPaths:
    """The room that a plan makes for its own files by what it takes out: files go before others are placed."""

    def __init__(self, plan: ChangePlan) -> None:
        self._removed_paths = {path for path, content in plan.files.items() if content is None}
        self._above = {above for path in self._removed_paths for above in parents(path)}

    def covers(self, path: str) -> bool:
        """Report whether a file goes where the path needs a folder, or a folder where the path is to be."""
        return path in self._above or not self._removed_paths.isdisjoint(parents(path))


class Committer:
    """Carries out groups of operations. Not safe between threads. ``rules`` see all operations but edits by hand."""

    def __init__(
        self,
        layout: RootLayout,
        repository: Repository,
        worktree: Worktree,
        syncer: Syncer,
        stat_cache: StatCache,
    ) -> None:
        self.rules: Sequence[MemoryRule] = ()
        self._layout = layout
        self._repository = repository
        self._worktree = worktree
        self._syncer = syncer
        self._stat_cache = stat_cache
        self._edits = ExternalEditScanner(worktree, repository, stat_cache)

    def commit(self, operations: Sequence[WriteOperation]) -> CommitResult:
        """Carry out the operations that can be; each other gets its Refusal. Returns when all is on disk."""
        reason = "another program keeps changing the repository"
        for attempt in range(ATTEMPTS):
            try:
                with self._worktree.keep_folders_open():
                    return _CommitAttempt(self, operations).run()
            except HeadLocked as held:
                reason = f"another program holds {held}; end it, or remove that file if nothing runs"
                time.sleep(min(MAX_RETRY_DELAY, 0.005 * 2**attempt))
            except HeadMoved:
                continue  # a person committed with git in between: plan anew
            except (OSError, KeyError, pygit2.GitError) as error:
                if (
                    attempt < VANISHED_FILE_ATTEMPTS
                    and _may_be_concurrent_git(error)
                    and self._repository.reopen()
                ):
                    continue
                if len(operations) > 1:
                    return self._commit_individually(operations)
                _log.error("memory could not be written: %s", error)
                return CommitResult([self._failure(error)])
        refusal = Refusal("write_failure", f"Nothing was written: {reason}.")
        return CommitResult([refusal for _ in operations])

    def unstable_files(self) -> frozenset[str]:
        """The files that ``CommitExternalEdits`` left, because somebody was writing them."""
        return self._edits.unstable_files()

    def recover(self) -> None:
        """Repair what an interrupted checkout left. Raises OSError."""
        recover(self._layout, self._worktree, self._repository, self._stat_cache)

    def _failure(self, error: Exception) -> Refusal:
        if isinstance(error, OSError):
            reason = error.strerror.lower() if error.strerror else str(error) or "storage failed"
            return Refusal("write_failure", f"Nothing was written: {reason}.")
        where = f"{self._repository.folder} ({error_text(error)})"
        text = f"Nothing was written: git failed in {where}. Run: trunkline memory doctor. The files are as they were."
        return Refusal("write_failure", text)

    def _commit_individually(self, operations: Sequence[WriteOperation]) -> CommitResult:
        """Commit each operation alone, because one of the group made the group fail."""
        total = CommitResult([])
        for operation in operations:
            result = self.commit([operation])
            total.outcomes += result.outcomes
            total.commits += result.commits
        return total


class _CommitAttempt:
    """An attempt to commit a group."""

    def __init__(self, committer: Committer, operations: Sequence[WriteOperation]) -> None:
        self._committer = committer
        self._repository = committer._repository
        self._operations = operations
        self._batch = CommitBatch()
        self._contents: dict[pygit2.Oid, bytes] = {}
        self._appends: dict[str, FileAppend] = {}

    def run(self) -> CommitResult:
        self._committer.recover()
        head = self._repository.head()
        self._view = GitView(self._repository, head)
        planned = [self._try(operation) for operation in self._operations]
        new = self._batch.write(self._repository, head) if self._batch.drafts else head
        if new is not None and new != head:
            self._write(head, new)
        return CommitResult(
            [one if isinstance(one, Refusal) else self._finish(one, head) for one in planned],
            [draft.changed() for draft in self._batch.drafts],
        )

    # Planning ------------------------------------------------------------------------------------------------

    def _try(self, operation: WriteOperation) -> _PlannedOperation | Refusal:
        try:
            return self._plan(operation)
        except Refusal as refusal:
            return refusal
        except AccessDenied as shut:
            return Refusal("write_failure", f"Nothing was written: {shut.reason}.")

    def _plan(self, operation: WriteOperation) -> _PlannedOperation:
        # Edits by hand are committed before the operation is planned, so that it is planned upon them, its conditions
        # hold against them, and they are in history before they are overwritten (ADR 0052). They stay in the batch if
        # the operation is refused: they happened. The rules come next, because they may change the files that the
        # checks below are about. A draft is added last: a refusal above leaves nothing of it in the batch.
        for path in operation.affected_paths:
            self._commit_external_edits(path, at_rest=isinstance(operation, CommitExternalEdits))
        plan = self._change_after_rules(operation, operation.plan(self._view))
        freed = _FreedPaths(plan)
        for path, content in plan.files.items():
            if not freed.covers(path):
                self._committer._worktree.probe(path)
            if content is not None and self._committer._worktree.folds:
                self._refuse_case_variants(path, plan)
        entries = {path: self._entry(path, content) for path, content in plan.files.items()}
        entries = {path: entry for path, entry in entries.items() if entry != self._view.entry(path)}
        if not entries and plan.merged_commit is None:
            return _PlannedOperation(plan, {}, None)
        self._merge_appends(plan, entries)
        self._view.apply(entries)
        draft = self._batch.add(
            CommitOrigin.from_scope(operation.actor, operation.scope),
            entries,
            operation.reason or plan.reason,
            plan.merged_commit,
        )
        return _PlannedOperation(plan, entries, draft)

    def _refuse_case_variants(self, path: str, plan: ChangePlan) -> None:
        """Refuse a name that differs from an existing one only in case, on a file system that treats them as
        the same file."""
        other = self._view.case_variant(path)
        if other is not None and plan.files.get(other, b"") is not None:
            raise Refusal(
                "write_conflict", f"{path!r} would be the same file here as {other!r}, which exists."
            )

    def _commit_external_edits(self, path: str, *, at_rest: bool) -> None:
        """Commit first what a person changed by hand, so that it is in history and conditions see it. What is about to
        be changed cannot wait until it is at rest."""
        edits = self._committer._edits.scan(self._view.base, path, at_rest=at_rest)
        fresh = {edited: entry for edited, entry in edits.items() if edited not in self._view.pending}
        self._view.apply_external(fresh)
        for moves, reason in ((False, EXTERNAL_EDIT_REASON), (True, UNSTABLE_EDIT_REASON)):
            part = {
                path: entry
                for path, entry in fresh.items()
                if self._committer._edits.is_being_written(path) is moves
            }
            if part:
                self._batch.add(CommitOrigin(OWNER), part, reason)

    def _change_after_rules(self, operation: WriteOperation, plan: ChangePlan) -> ChangePlan:
        """The plan after all rules have seen it."""
        if not self._committer.rules or not plan.files or plan.rules_applied:
            return plan
        files = {path: self._bytes(content) for path, content in plan.files.items()}
        for block_file in block_files(files):
            self._commit_external_edits(block_file, at_rest=False)
        change = change_after_rules(self._committer.rules, operation, plan, files, self._view)
        if change.files == files:
            return plan
        return ChangePlan(dict(change.files), change.reason or plan.reason, count=plan.count)

    def _bytes(self, content: Content) -> bytes | None:
        return self._repository.data(content.blob) if isinstance(content, BlobEntry) else content

    def _entry(self, path: str, content: Content) -> BlobEntry | None:
        if content is None or isinstance(content, BlobEntry):
            return content
        blob = self._repository.write_blob(content)
        self._contents[blob] = content
        before = self._view.entry(path)
        return BlobEntry(blob, before is not None and before.executable)

    def _merge_appends(self, plan: ChangePlan, entries: Entries) -> None:
        """A file that only ever grew in this group is appended to; any other is written whole."""
        for path in entries:
            append, earlier = plan.growth.get(path), self._appends.pop(path, None)
            if append is None or (path in self._view.pending and earlier is None):
                continue
            if earlier is not None:
                append = FileAppend(earlier.base, earlier.size, earlier.tail + append.tail)
            self._appends[path] = append

    # Carrying out --------------------------------------------------------------------------------------------

    def _write(self, head: pygit2.Oid | None, new: pygit2.Oid) -> None:
        # Up to the move of the branch nothing is visible, so a crash loses only what nobody was told of: objects that
        # no commit names, and staged files, which the next start removes. The objects are on disk before the branch
        # names them. The note is there before the branch moves, because afterwards it alone tells which files lag
        # behind: a crash behind the move leaves files of the old commit, which would look like edits by hand, and
        # ``recover`` brings them to the new one before anything else is planned. A note whose branch did not move is
        # dropped the same way, also after an error that is no crash. The caller is told after ``place``, so what it
        # was told survives; a crash just before that leaves a commit whose caller has no answer.
        committer = self._committer
        checkout = Checkout(committer._layout, committer._worktree, self._repository, committer._stat_cache)
        try:
            staged = checkout.stage(new, self._view, self._contents, self._appends)
            committer._syncer.sync([*self._repository.take_new_objects(), *staged])
            checkout.write_intent()
            self._repository.advance_branch(head, new)
        except BaseException:
            checkout.discard()
            raise
        try:
            checkout.place()
        except (OSError, Refusal) as error:
            # The branch goes back first: ``recover`` takes its direction from it. A crash between the two lines has
            # the next start restore the old files, one before them the new ones. Both are whole.
            self._repository.rollback_branch(new, head)
            self._committer.recover()
            raise OSError(getattr(error, "errno", None), "a file could not be placed") from error

    def _finish(self, planned: _PlannedOperation, head: pygit2.Oid | None) -> OperationResult:
        planned.plan.done(planned.entries)
        version = planned.draft.version if planned.draft else str(head or "")
        return OperationResult(version, planned.plan.count)


def _may_be_concurrent_git(error: Exception) -> bool:
    """Report whether an error can come from a git that packs and prunes beside us. libgit2's errors bear no number."""
    return not isinstance(error, OSError) or error.errno in (None, errno.ENOENT)


def change_after_rules(
    rules: Sequence[MemoryRule],
    request: WriteOperation,
    plan: ChangePlan,
    files: Mapping[str, bytes | None],
    view: View,
) -> Change:
    """The change after all rules have seen it; ``files`` are the plan's, as bytes, and ``view`` is what it was planned
    against. Raises Refusal when a rule refuses or fails, or wants a path that is not allowed."""
    change = Change(
        dict(files),
        actor=request.actor,
        reason=request.reason or plan.reason,
        scope=request.scope,
        known=_unchanged_bytes(plan, files),
        missing_blocks=missing_blocks(files, lambda path: view.entry(path) is not None),
    )
    return apply_rules(rules, change)


def _unchanged_bytes(plan: ChangePlan, files: Mapping[str, bytes | None]) -> dict[str, int]:
    """Return the number of bytes at the beginning of each file that memory already has: the file only grows,
    or is moved."""
    known = {path: growth.size for path, growth in plan.growth.items()}
    moved = (path for path, content in plan.files.items() if isinstance(content, BlobEntry))
    return known | {path: len(files[path] or b"") for path in moved}
