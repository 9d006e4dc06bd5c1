"""The purge of a repository, while nobody else writes: scan the history, remove what exists now, rewrite the history,
sweep. It can be killed at any point and started again."""

import os

from trunkline.api.bus import Refusal
from trunkline.api.memory import OWNER, Purge
from trunkline.api.store import MemoryChanged, PurgeResult
from trunkline_git_store.components import StoreComponents
from trunkline_git_store.maintenance import StoreMaintenance
from trunkline_git_store.operations import CommitExternalEdits, DeletePath, WriteFiles, WriteOperation
from trunkline_git_store.purge.history_rewrite import PurgeRewrite
from trunkline_git_store.purge.scan import FileFilter, PurgeScan, PurgeScanResult, write_edit_blobs
from trunkline_git_store.purge.target import Target
from trunkline_git_store.purge.version_index import VersionIndex


class PurgeJob:
    """Runs where writes run."""

    def __init__(self, components: StoreComponents, maintenance: StoreMaintenance, *, sync: bool) -> None:
        self._components = components
        self._maintenance = maintenance
        self._sync = sync

    def run(
        self, target: Target, purge: Purge, without: FileFilter, actor: str
    ) -> tuple[PurgeResult, list[MemoryChanged]]:
        """Purge the target; return what was removed, and the changes to publish."""
        commits = self._commit([CommitExternalEdits(actor=OWNER)])
        head = self._components.repository.head()
        assert head is not None
        traced = PurgeScan(VersionIndex(self._components.repository.git, head), target, purge).run(without)
        commits += self._take_out(traced, actor)
        rewriting = self._rewrite(target, traced)
        purged = PurgeResult(
            paths=tuple(sorted(traced.gone | rewriting.paths - traced.edits.keys())),
            commits=rewriting.rewritten,
            changed=tuple(sorted(traced.changed)),
            versions=tuple(sorted(traced.versions)),
            kept=traced.kept,
        )
        return purged, commits

    def _commit(self, operations: list[WriteOperation]) -> list[MemoryChanged]:
        result = self._components.committer.commit(operations)
        for outcome in result.outcomes:
            if isinstance(outcome, Refusal) and outcome.code != "not_found":
                raise outcome
        return result.commits

    def _take_out(self, traced: PurgeScanResult, actor: str) -> list[MemoryChanged]:
        """Take it out of the files that are there now, as a change like any other."""
        now = dict(traced.now())
        reason = f"Purge {traced.purge.target}"
        operations: list[WriteOperation] = [
            DeletePath(actor=actor, reason=reason, path=path) for path, left in now.items() if left is None
        ]
        written: dict[str, bytes | None] = {path: left for path, left in now.items() if left is not None}
        if written:
            operations.append(WriteFiles(actor=actor, reason=reason, files=written))
        return self._commit(operations) if operations else []

    def _rewrite(self, target: Target, traced: PurgeScanResult) -> PurgeRewrite:
        git = self._components.repository.git
        self._maintenance.refresh_git_index()
        rewriting = PurgeRewrite(git, target, write_edit_blobs(git, traced.edits), traced.purge.conversations)
        moves = rewriting.run()
        if self._sync:
            os.sync()
        self._components.sweeper.write_marker()
        self._components.repository.move_references(moves)
        self._components.sweeper.sweep()
        self._components.repository.reopen()
        self._maintenance.note_rewrite()
        return rewriting
