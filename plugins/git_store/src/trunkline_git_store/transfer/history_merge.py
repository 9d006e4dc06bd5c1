"""Merges two memories: the result for each path, and the conflicts to report. Plans; writes nothing.

Both histories are kept: the commit that comes of it has both as its parents. So whatever is not taken over now can be
read at its version, and the next archive from the same place is compared with what both had last.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import pygit2

from trunkline.api.importer import ImportGap
from trunkline.api.store import (
    INITIAL_FILES,
    ImportConflict,
    conversation_paths,
    is_normalized,
    is_owner_only,
    is_preferences,
    is_private_to_another,
    parents,
    parse_conversation_path,
)
from trunkline_git_store.operations import Content
from trunkline_git_store.repository import BlobEntry, Repository, changed_files, entry_at, id_at, walk_commits
from trunkline_git_store.transfer.conversation_merge import merge_conversations
from trunkline_git_store.transfer.merge_choice import MergeChoice, choose
from trunkline_git_store.view import GitView

SEED_ACTORS = frozenset({"trunkline", "gateway"})
"""The authors of a memory's initial files. Files that only they wrote belong to nobody yet."""

MAX_SEED_COMMITS = 500
"""Commits back to which it is looked whether anybody changed what a memory began with."""

SEED_BLOBS = {str(pygit2.hash(data)) for data in INITIAL_FILES.values()}
"""The blobs that a new memory begins with."""

PURGE_HINT = "Its earlier form was imported with the history; purge it to remove that."

Rule = Callable[[str, bytes], bytes]
"""Gives what may stand in a file instead of what came. Raises Refusal."""


@dataclass(slots=True)
class MergeResult:
    """The files to write, and the report of the merge."""

    files: dict[str, Content] = field(default_factory=dict)
    added: int = 0
    changed: int = 0
    removed: int = 0
    joined: list[str] = field(default_factory=list)
    conflicts: list[ImportConflict] = field(default_factory=list)
    gaps: list[ImportGap] = field(default_factory=list)


PathPredicate = Callable[[str], bool]
"""Says of a path whether whoever imports may not bring it."""


def withheld_from(actor: str) -> PathPredicate:
    """Return a predicate of the paths that the actor may not import: those of the owner alone, private layers
    of others, and preferences, because the approval of an import does not show them."""

    def withheld(path: str) -> bool:
        return is_owner_only(path) or is_preferences(path) or is_private_to_another(path, actor)

    return withheld


class HistoryMerge:
    """Merges the commit ``theirs`` of ``repository``, which sees the objects of both memories.

    ``restore`` makes this memory what the other one was. Paths that are ``withheld`` stay as they are.
    """

    def __init__(
        self,
        repository: Repository,
        theirs: pygit2.Oid,
        *,
        restore: bool,
        withheld: PathPredicate,
        rule: Rule,
    ) -> None:
        self._repository = repository
        self.theirs = theirs
        self._restore = restore
        self._withheld = withheld
        self._rule = rule

    def is_merged(self, head: pygit2.Oid | None) -> bool:
        """Report whether the other history is part of this one already."""
        return self._repository.includes(head, str(self.theirs))

    def plan(self, view: GitView) -> MergeResult:
        """Return the merged content of the files."""
        one = _MergeAttempt(self._repository, self.theirs, view)
        merged = one.merged
        for path, ours, theirs in one.differing_paths():
            if theirs is not None and not is_normalized(path):
                merged.gaps.append(ImportGap(what=path, why="a memory file cannot have that name"))
            elif self._withheld(path):
                merged.gaps.append(ImportGap(what=path, why="only the owner can import it"))
            elif self._restore:
                one.take(path, ours, theirs, self._rule)
            else:
                one.merge(path, ours, theirs, self._rule)
        one.drop_path_clashes()
        return merged


class _MergeAttempt:
    """An attempt to merge, against the state of this memory at that moment."""

    def __init__(self, repository: Repository, theirs: pygit2.Oid, view: GitView) -> None:
        self._repository = repository
        self._view = view
        self._theirs = repository.commit(theirs)
        base = None if view.head is None else repository.git.merge_base(view.head, theirs)
        self._related = base is not None
        self._base = repository.tree(base)
        self.merged = MergeResult()

    def differing_paths(self) -> Iterator[tuple[str, BlobEntry | None, BlobEntry | None]]:
        """The paths at which the memories differ, with both states."""
        ours_now = self._repository.tree(self._view.head)
        before = None if ours_now is None else ours_now.id
        found = dict(changed_files(self._repository.git, before, self._theirs.tree_id))
        for path in self._view.pending:
            found.setdefault(path, entry_at(self._theirs.tree, path))
        for path, theirs in sorted(found.items()):
            ours = self._view.entry(path)
            if _blob(ours) != _blob(theirs):
                yield path, ours, theirs

    def merge(self, path: str, ours: BlobEntry | None, theirs: BlobEntry | None, rule: Rule) -> None:
        """Merge a path that both memories changed."""
        path, ours = self._existing_path(path, ours, theirs)
        base = entry_at(self._base, path)
        choice = choose(_blob(base), _blob(ours), _blob(theirs), related=self._related)
        if choice is MergeChoice.BOTH and not self._related:
            choice = self._prefer_changed(path, ours, theirs)
        if choice is MergeChoice.THEIRS:
            self.take(path, ours, theirs, rule)
        elif choice is MergeChoice.BOTH and ours and theirs and parse_conversation_path(path):
            self._join(path, ours, theirs, rule)
        elif choice is MergeChoice.BOTH:
            self._report_conflict(path, ours, theirs)

    def take(self, path: str, ours: BlobEntry | None, theirs: BlobEntry | None, rule: Rule) -> None:
        """The path gets their state."""
        merged = self.merged
        if theirs is None:
            merged.files[path] = None
            merged.removed += 1
            return
        data = self._repository.data(theirs.blob)
        content = self._apply_rule(path, data, rule)
        if content is None or (ours is not None and str(ours.blob) == str(pygit2.hash(content))):
            return
        if content != data:
            merged.gaps.append(ImportGap(what=path, why="a rule of this memory changed it", hint=PURGE_HINT))
        merged.files[path] = theirs if content == data else content
        merged.added += ours is None
        merged.changed += ours is not None

    def drop_path_clashes(self) -> None:
        """Drop files whose path needs a folder where this memory has a file, or the reverse."""
        files = self.merged.files
        for path in [path for path, content in files.items() if content is not None]:
            if any(self._stays(above) for above in parents(path)) or any(
                below not in files for below in self._view.files_under(path)
            ):
                del files[path]
                self._conflict(path, "a file and a folder cannot have the same name: ours stays")

    def _stays(self, path: str) -> bool:
        return self.merged.files.get(path, self._view.entry(path)) is not None

    def _existing_path(
        self, path: str, ours: BlobEntry | None, theirs: BlobEntry | None
    ) -> tuple[str, BlobEntry | None]:
        """A conversation may lie at its older place here."""
        names = parse_conversation_path(path)
        if names is None or ours is not None or theirs is None:
            return path, ours
        for place in conversation_paths(*names):
            if place != path and (entry := self._view.entry(place)) is not None:
                return place, entry
        return path, ours

    def _prefer_changed(self, path: str, ours: BlobEntry | None, theirs: BlobEntry | None) -> MergeChoice:
        """Of two memories that never were one, what one of them only began with gives way."""
        if _blob(theirs) in SEED_BLOBS:
            return MergeChoice.OURS
        if _blob(ours) in SEED_BLOBS or self._nobody_changed(path):
            return MergeChoice.THEIRS
        return MergeChoice.BOTH

    def _nobody_changed(self, path: str) -> bool:
        head = self._view.head
        if head is None or path in self._view.pending:
            return False
        commits = list(islice(walk_commits(self._repository, head), MAX_SEED_COMMITS + 1))
        if len(commits) > MAX_SEED_COMMITS:
            return False
        authors = {
            commit.author.name
            for commit in commits
            if all(id_at(commit.tree, path) != id_at(parent.tree, path) for parent in commit.parents)
            and id_at(commit.tree, path) is not None
        }
        return authors <= SEED_ACTORS

    def _join(self, path: str, ours: BlobEntry, theirs: BlobEntry, rule: Rule) -> None:
        before = self._view.blob(ours)
        text, whole = merge_conversations(before, self._repository.data(theirs.blob))
        if not whole:
            self._conflict(path, "a message of this conversation differs")
        content = self._apply_rule(path, text, rule)
        if content is not None and content != before:
            self.merged.files[path] = content
            self.merged.joined.append(path)

    def _apply_rule(self, path: str, data: bytes, rule: Rule) -> bytes | None:
        """Return the content that the memory rules permit; None when they refuse it, which is reported."""
        try:
            return rule(path, data)
        except Exception as error:
            why = getattr(error, "message", "a rule of this memory failed")
            self.merged.gaps.append(ImportGap(what=path, why=f"it was not imported: {why}"))
            return None

    def _report_conflict(self, path: str, ours: BlobEntry | None, theirs: BlobEntry | None) -> None:
        if theirs is None:
            self._conflict(path, "deleted there and changed here: it stays")
        elif ours is None:
            self._conflict(path, "changed there and deleted here: it stays deleted")
        else:
            self._conflict(path, "changed there and here: this memory's text stays")

    def _conflict(self, path: str, what: str) -> None:
        self.merged.conflicts.append(ImportConflict(path=path, what=what, version=str(self._theirs.id)))


def _blob(entry: BlobEntry | None) -> str | None:
    return None if entry is None else str(entry.blob)
