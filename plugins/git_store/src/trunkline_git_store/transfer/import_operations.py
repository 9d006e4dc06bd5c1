"""The write operations that import an archive: a whole memory with its history, or files without one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pygit2

from trunkline.api.bus import Refusal
from trunkline.api.importer import ImportGap
from trunkline.api.store import ImportConflict, conversation_paths, parse_conversation_path
from trunkline_git_store.operations import ChangePlan, WriteOperation
from trunkline_git_store.transfer.conversation_merge import merge_conversations
from trunkline_git_store.transfer.history_merge import SEED_BLOBS, HistoryMerge, MergeResult, PathPredicate
from trunkline_git_store.transfer.merge_choice import MergeChoice, choose
from trunkline_git_store.view import GitView, View


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeHistory(WriteOperation):
    """Make another memory's history part of this one, and the files what both make together."""

    merging: HistoryMerge
    tell: Callable[[MergeResult], None]

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The whole memory: the operation commits all edits by hand first."""
        return ("",)

    def plan(self, view: View) -> ChangePlan:
        """Return no change if this memory has the whole archive already."""
        assert isinstance(view, GitView)
        merged = self.merging.plan(view)
        self.tell(merged)
        known = self.merging.is_merged(view.head)
        return ChangePlan(
            merged.files,
            "Import a memory",
            merged_commit=None if known else self.merging.theirs,
            rules_applied=True,
        )


class ImportRecordEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file that came from elsewhere: the blob it was when it came, and where it was there."""

    blob: str
    source: str


class ImportRecord(msgspec.Struct, kw_only=True):
    """The record of earlier imports from one system. It is a file of memory, so that a person sees the origin
    of files and the next import knows what changed on which side."""

    system: str
    files: dict[str, ImportRecordEntry] = {}

    @staticmethod
    def path(system: str) -> str:
        """Return the path of the record."""
        return f"imported/{system}/brought.json"

    @classmethod
    def read(cls, system: str, view: View) -> "ImportRecord":
        """Return the record in memory. A file that cannot be read counts as none."""
        entry = view.entry(cls.path(system))
        try:
            return msgspec.json.decode(view.blob(entry), type=cls) if entry else cls(system=system)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return cls(system=system)

    def encode(self) -> bytes:
        """Its bytes: one key a line, sorted."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=2) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFiles(WriteOperation):
    """Bring files of another system: path to the file that holds its bytes, and to where it was there."""

    system: str
    files: dict[str, Path]
    sources: dict[str, str]
    withheld: PathPredicate
    tell: Callable[[MergeResult], None]

    @property
    def affected_paths(self) -> tuple[str, ...]:
        """The paths, and the record of what came."""
        places = [place for path in self.files for place in _places(path)]
        return (*places, *(self._conflict_path(path) for path in self.files), ImportRecord.path(self.system))

    def plan(self, view: View) -> ChangePlan:
        """Return the changes of the other system since the last import. A file that changed on both sides is
        added beside the present one."""
        merged, record = MergeResult(), ImportRecord.read(self.system, view)
        for path, file in self.files.items():
            data = file.read_bytes()
            if self.withheld(path):
                merged.gaps.append(ImportGap(what=path, why="only the owner can import it"))
            else:
                self._import_file(path, data, view, record, merged)
        text = record.encode()
        entry = view.entry(ImportRecord.path(self.system))
        files = dict(merged.files)
        if record.files and (entry is None or view.blob(entry) != text):
            files[ImportRecord.path(self.system)] = text
        self.tell(merged)
        return ChangePlan(files, f"Import {len(merged.files)} files of {self.system}")

    def _import_file(
        self, path: str, data: bytes, view: View, record: ImportRecord, merged: MergeResult
    ) -> None:
        places = _places(path)
        path = next((place for place in places if view.entry(place) is not None), places[0])
        theirs, entry, before = str(pygit2.hash(data)), view.entry(path), record.files.get(path)
        ours = None if entry is None else str(entry.blob)
        record.files[path] = ImportRecordEntry(blob=theirs, source=self.sources.get(path, ""))
        base = None if before is None else before.blob
        choice = choose(base, ours, theirs, related=before is not None)
        if choice is MergeChoice.BOTH and base is None and ours in SEED_BLOBS:
            choice = MergeChoice.THEIRS
        if choice is MergeChoice.THEIRS:
            self._take(path, data, view, merged)
        elif choice is MergeChoice.BOTH and entry is not None and parse_conversation_path(path):
            text, _ = merge_conversations(view.blob(entry), data)
            if text != view.blob(entry):
                merged.files[path] = text
                merged.joined.append(path)
        elif choice is MergeChoice.BOTH and entry is not None:
            self._keep_beside(path, data, view, merged)
        elif choice is MergeChoice.BOTH:
            merged.conflicts.append(
                ImportConflict(path=path, what="changed there and deleted here: it stays deleted", version="")
            )

    def _take(self, path: str, data: bytes, view: View, merged: MergeResult) -> None:
        above = view.blocking_file(path)
        if above is not None or (view.entry(path) is None and view.is_folder(path)):
            merged.gaps.append(ImportGap(what=path, why=f"{above or path} is in the way"))
            return
        merged.files[path] = data
        merged.added += view.entry(path) is None
        merged.changed += view.entry(path) is not None

    def _keep_beside(self, path: str, data: bytes, view: View, merged: MergeResult) -> None:
        aside = self._conflict_path(path)
        entry = view.entry(aside)
        if entry is None or view.blob(entry) != data:
            self._take(aside, data, view, merged)
        what = f"changed there and here: this memory's text stays, the other is in {aside}"
        merged.conflicts.append(ImportConflict(path=path, what=what, version=""))

    def _conflict_path(self, path: str) -> str:
        return f"imported/{self.system}/conflicts/{path}"


def _places(path: str) -> tuple[str, ...]:
    """Return the possible paths of a file: a conversation has two."""
    names = parse_conversation_path(path)
    return (path,) if names is None else conversation_paths(*names)


def check_system_name(system: str) -> None:
    """Refuse a system's name that would be no name of a folder."""
    if not system or not all(letter.isascii() and (letter.isalnum() or letter == "-") for letter in system):
        raise Refusal("bad_archive", "The archive cannot be used: its manifest names no system.")
