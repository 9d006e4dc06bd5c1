"""Unpacks and checks one archive, and turns it into write operations. Blocking; runs in threads."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2

from trunkline.api.archive import MEMORY, OWN, ArchiveManifest, InvalidArchive, unpack
from trunkline.api.importer import ImportGap
from trunkline.api.memory import block_file_path
from trunkline.api.store import ImportMemory, ImportProgress, InstalledComponents, MemoryImport, is_normalized
from trunkline_git_store.operations import WriteOperation
from trunkline_git_store.packer import Packer
from trunkline_git_store.repository import Repository
from trunkline_git_store.root_layout import RootLayout
from trunkline_git_store.transfer.history_merge import (
    HistoryMerge,
    MergeResult,
    PathPredicate,
    Rule,
    withheld_from,
)
from trunkline_git_store.transfer.import_operations import ImportFiles, MergeHistory, check_system_name
from trunkline_git_store.transfer.incoming_history import IncomingHistory
from trunkline_git_store.transfer.missing_requirements import find_gaps, policy_gaps
from trunkline_git_store.transfer.purge_check import refuse_purged
from trunkline_git_store.view import GitView

BATCH_FILES, BATCH_BYTES = 500, 16 * 1024 * 1024
"""The number and size of another system's files per commit, so that other writers come in between."""

MAX_FILE_BYTES = 100 * 1024 * 1024


class ArchiveImport:
    """The import of an archive. ``report_progress`` is called with the progress."""

    def __init__(
        self,
        archive: Path,
        scratch: Path,
        request: ImportMemory,
        rule: Rule,
        report_progress: Callable[[ImportProgress], None],
    ) -> None:
        self._report_progress = report_progress
        self._withheld: PathPredicate = (
            (lambda path: False) if request.settings else withheld_from(request.actor)
        )
        self._archive = archive
        self._scratch = scratch
        self._request = request
        self._rule = rule
        self._history: IncomingHistory | None = None
        self._accounts: list[MergeResult] = []
        self._gaps: list[ImportGap] = []

    def open(self, root: Path) -> None:
        """Unpack and look it all through. Raises InvalidArchive, Refusal and OSError; nothing is changed by then."""
        self.manifest: ArchiveManifest = unpack(
            self._archive, self._scratch, on_progress=self._progress_reporter("unpacking")
        )
        self._archive.unlink(missing_ok=True)
        if self.manifest.head:
            self._history = IncomingHistory(self._scratch, root, self._progress_reporter("checking"))
            if str(self._history.head) != self.manifest.head:
                raise InvalidArchive("its history does not end at the commit that its manifest names")
            self._refuse_purged(root, self._history)
        elif self.manifest.system == OWN:
            raise InvalidArchive("it contains no history")
        else:
            check_system_name(self.manifest.system)
            if self._request.mode == "restore":
                raise InvalidArchive("only a memory of Trunkline can be restored", hint="Use --merge.")
            self._files = self._list_files()

    def _refuse_purged(self, root: Path, arrived: IncomingHistory) -> None:
        own = Repository(root)
        try:
            refuse_purged(own, arrived.repository, arrived.commits)
        finally:
            own.close()

    def preview(self, root: Path) -> None:
        """Plan without writing, against what is committed now."""
        repository = Repository(root)
        try:
            for request in self.operations():
                request.plan(GitView(repository, repository.head()))
        finally:
            repository.close()

    def install_objects(self, layout: RootLayout, packer: Packer) -> None:
        """Put what is fresh of the history beside ours; nothing refers to it yet."""
        if self._history is None or not self._history.fresh:
            return
        self._report_progress(ImportProgress(stage="packing", total=len(self._history.fresh)))
        folder = layout.state_folder / "packing" / "arrived"
        shutil.rmtree(folder, ignore_errors=True)
        packer.install(folder, self._history.pack(folder))

    def operations(self) -> Iterator[WriteOperation]:
        """Yield the operations to commit, one after the other."""
        reason = f"Import a memory of {self.manifest.created:%Y-%m-%d}"
        if self._history is not None:
            merging = HistoryMerge(
                self._history.repository,
                self._history.head,
                restore=self._request.mode == "restore",
                withheld=self._withheld,
                rule=self._rule,
            )
            self._report_progress(ImportProgress(stage="writing", total=self.manifest.files))
            yield MergeHistory(
                actor=self._request.actor,
                reason=reason,
                merging=merging,
                tell=self._account(len(self._accounts)),
            )
            return
        yield from self._batches()

    def keep_branches(self, repository: Repository) -> None:
        """Branches and tags of the other history besides the one that was joined; ours are left where they stand."""
        for name, commit in self._history.references.items() if self._history is not None else ():
            there = repository.git.references.get(name)
            if there is not None and there.target != commit:
                name = f"{name}-{str(commit)[:10]}"
                there = repository.git.references.get(name)
            if there is None:
                try:
                    repository.git.references.create(name, commit)
                except (pygit2.GitError, ValueError):
                    self._accounts[-1].gaps.append(ImportGap(what=name, why="a branch here is in its way"))

    def report(self, version: str, here: InstalledComponents) -> MemoryImport:
        """The account of all of it. ``here`` is what the memory may count on."""
        accounts = self._accounts
        gaps = (gap for account in accounts for gap in account.gaps)
        missing = [*self.manifest.gaps, *self._gaps, *gaps, *self._missing(here)]
        return MemoryImport(
            system=self.manifest.system,
            version=version,
            commits=len(self._history.commits) if self._history is not None else 0,
            added=sum(one.added for one in accounts),
            changed=sum(one.changed for one in accounts),
            removed=sum(one.removed for one in accounts),
            joined=tuple(path for one in accounts for path in one.joined),
            conflicts=tuple(conflict for one in accounts for conflict in one.conflicts),
            gaps=tuple(missing),
            dry_run=self._request.dry_run,
        )

    def close(self) -> None:
        """Let go of files."""
        if self._history is not None:
            self._history.close()

    def _missing(self, here: InstalledComponents) -> Iterator[ImportGap]:
        root = self._scratch / MEMORY

        def read(path: str) -> bytes | None:
            file = root / path
            return file.read_bytes() if file.is_file() else None

        def named(folder: str) -> dict[str, bytes]:
            files = sorted((root / folder).glob("*.json"))
            return {f"{folder}/{file.name}": file.read_bytes() for file in files}

        blocks = sorted(file.parent.name for file in root.glob(block_file_path("*")))
        yield from find_gaps(self.manifest.plugins, blocks, read, here)
        known = {path.removeprefix("identities/").removesuffix(".json") for path in named("identities")}
        brought = {path for account in self._accounts for path in account.files}
        policies = {path: data for path, data in named("policies").items() if path in brought}
        yield from policy_gaps(policies, known | {"owner"})

    def _list_files(self) -> dict[str, Path]:
        root = self._scratch / MEMORY
        if (root / ".git").exists():
            raise InvalidArchive("it contains a history that its manifest does not name")
        files: dict[str, Path] = {}
        for file in sorted(file for file in root.rglob("*") if file.is_file()):
            path = file.relative_to(root).as_posix()
            if not is_normalized(path):
                self._gaps.append(ImportGap(what=path, why="a memory file cannot have that name"))
            elif file.stat().st_size > MAX_FILE_BYTES:
                self._gaps.append(
                    ImportGap(what=path, why=f"it is larger than {MAX_FILE_BYTES // 1024 // 1024} MB")
                )
            else:
                files[path] = file
        return files

    def _batches(self) -> Iterator[WriteOperation]:
        batch: dict[str, Path] = {}
        size = 0
        for number, (path, file) in enumerate(self._files.items(), start=1):
            batch[path] = file
            size += file.stat().st_size
            if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
                yield self._import_files(batch)
                batch, size = {}, 0
            self._report_progress(ImportProgress(stage="writing", done=number, total=len(self._files)))
        if batch:
            yield self._import_files(batch)

    def _import_files(self, batch: dict[str, Path]) -> ImportFiles:
        return ImportFiles(
            actor=self._request.actor,
            system=self.manifest.system,
            files=batch,
            sources=self.manifest.sources,
            withheld=self._withheld,
            tell=self._account(len(self._accounts)),
        )

    def _account(self, place: int) -> Callable[[MergeResult], None]:
        """Return the callback for the report of an operation. It may be planned more than once: the last
        report counts."""
        self._accounts.append(MergeResult())

        def tell(merged: MergeResult) -> None:
            self._accounts[place] = merged

        return tell

    def _progress_reporter(self, stage: str) -> Callable[[int], None]:
        def report_progress(done: int) -> None:
            self._report_progress(ImportProgress(stage=stage, done=done))

        return report_progress
