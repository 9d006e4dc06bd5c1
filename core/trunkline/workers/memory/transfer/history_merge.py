"""Two memories become one: what each path holds afterwards, and what a person should be told. Plans; writes nothing.

Both histories are kept: the commit that comes of it has both as its parents. So whatever is not taken over now can be
read at its version, and the next archive from the same place is compared with what both had last.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import pygit2

from trunkline._util.archives.manifest import Gap
from trunkline.contracts.memory.initial_files import SEED
from trunkline.contracts.memory.messages import ImportConflict
from trunkline.contracts.memory.paths import is_owners, is_preferences, private_to_another
from trunkline.workers.memory.conversations import conversation_places, names_of
from trunkline.workers.memory.operations import Content
from trunkline.workers.memory.paths import parents, plain
from trunkline.workers.memory.repository import Entry, Repository, differences, entry_at, id_at, walk_back
from trunkline.workers.memory.transfer.conversation_merge import join
from trunkline.workers.memory.transfer.merge_choice import Choice, choose
from trunkline.workers.memory.view import GitView

BEGINNERS = frozenset({"trunkline", "gateway"})
"""Who writes the first files of a memory. What only they wrote is nobody's yet."""

YOUNG = 500
"""Commits back to which it is looked whether anybody changed what a memory began with."""

SEEDS = {str(pygit2.hash(data)) for data in SEED.values()}
"""The blobs that a new memory begins with."""

PURGE = "As it was it came along in history; to be rid of that, purge it."

Rule = Callable[[str, bytes], bytes]
"""Gives what may stand in a file instead of what came. Raises Refusal."""


@dataclass(slots=True)
class Merged:
    """What is to be written, and the account of it."""

    files: dict[str, Content] = field(default_factory=dict)
    added: int = 0
    changed: int = 0
    removed: int = 0
    joined: list[str] = field(default_factory=list)
    conflicts: list[ImportConflict] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


Withheld = Callable[[str], bool]
"""Says of a path whether whoever imports may not bring it."""


def withheld_from(actor: str) -> Withheld:
    """What is the owner's alone to bring, and others' private layers. Preferences too: who approves an import is not
    shown what they would become."""

    def withheld(path: str) -> bool:
        return is_owners(path) or is_preferences(path) or private_to_another(path, actor)

    return withheld


class Merging:
    """Merges the commit ``theirs`` of ``repository``, which sees the objects of both memories.

    ``restore`` makes this memory what the other one was. Paths that are ``withheld`` stay as they are.
    """

    def __init__(
        self, repository: Repository, theirs: pygit2.Oid, *, restore: bool, withheld: Withheld, rule: Rule
    ) -> None:
        self._repository = repository
        self.theirs = theirs
        self._restore = restore
        self._withheld = withheld
        self._rule = rule

    def known(self, head: pygit2.Oid | None) -> bool:
        """Whether the other history is part of this one already."""
        return self._repository.includes(head, str(self.theirs))

    def plan(self, view: GitView) -> Merged:
        """What the files are to hold."""
        one = _Merge(self._repository, self.theirs, view)
        merged = one.merged
        for path, ours, theirs in one.differing():
            if theirs is not None and not plain(path):
                merged.gaps.append(Gap(what=path, why="no file of memory may have that name"))
            elif self._withheld(path):
                merged.gaps.append(Gap(what=path, why="it is the owner's to bring"))
            elif self._restore:
                one.take(path, ours, theirs, self._rule)
            else:
                one.merge(path, ours, theirs, self._rule)
        one.leave_clashes()
        return merged


class _Merge:
    """One attempt, against what this memory holds at that moment."""

    def __init__(self, repository: Repository, theirs: pygit2.Oid, view: GitView) -> None:
        self._repository = repository
        self._view = view
        self._theirs = repository.commit(theirs)
        base = None if view.head is None else repository.git.merge_base(view.head, theirs)
        self._related = base is not None
        self._base = repository.tree(base)
        self.merged = Merged()

    def differing(self) -> Iterator[tuple[str, Entry | None, Entry | None]]:
        """The paths at which the memories differ, with both states."""
        ours_now = self._repository.tree(self._view.head)
        before = None if ours_now is None else ours_now.id
        found = dict(differences(self._repository.git, before, self._theirs.tree_id))
        for path in self._view.pending:
            found.setdefault(path, entry_at(self._theirs.tree, path))
        for path, theirs in sorted(found.items()):
            ours = self._view.entry(path)
            if _blob(ours) != _blob(theirs):
                yield path, ours, theirs

    def merge(self, path: str, ours: Entry | None, theirs: Entry | None, rule: Rule) -> None:
        """One path, as both changed it."""
        path, ours = self._elsewhere(path, ours, theirs)
        base = entry_at(self._base, path)
        choice = choose(_blob(base), _blob(ours), _blob(theirs), related=self._related)
        if choice is Choice.BOTH and not self._related:
            choice = self._begun(path, ours, theirs)
        if choice is Choice.THEIRS:
            self.take(path, ours, theirs, rule)
        elif choice is Choice.BOTH and ours and theirs and names_of(path):
            self._join(path, ours, theirs, rule)
        elif choice is Choice.BOTH:
            self._tell(path, ours, theirs)

    def take(self, path: str, ours: Entry | None, theirs: Entry | None, rule: Rule) -> None:
        """The path gets their state."""
        merged = self.merged
        if theirs is None:
            merged.files[path] = None
            merged.removed += 1
            return
        data = self._repository.data(theirs.blob)
        content = self._ruled(path, data, rule)
        if content is None or (ours is not None and str(ours.blob) == str(pygit2.hash(content))):
            return
        if content != data:
            merged.gaps.append(Gap(what=path, why="a rule of this memory changed it", hint=PURGE))
        merged.files[path] = theirs if content == data else content
        merged.added += ours is None
        merged.changed += ours is not None

    def leave_clashes(self) -> None:
        """What needs a folder where this memory keeps a file, or a file where it keeps a folder, stays out."""
        files = self.merged.files
        for path in [path for path, content in files.items() if content is not None]:
            if any(self._stays(above) for above in parents(path)) or any(
                below not in files for below in self._view.below(path)
            ):
                del files[path]
                self._conflict(
                    path, "a file and a folder of one name cannot stand beside each other: ours stays"
                )

    def _stays(self, path: str) -> bool:
        return self.merged.files.get(path, self._view.entry(path)) is not None

    def _elsewhere(self, path: str, ours: Entry | None, theirs: Entry | None) -> tuple[str, Entry | None]:
        """A conversation may lie at its older place here."""
        names = names_of(path)
        if names is None or ours is not None or theirs is None:
            return path, ours
        for place in conversation_places(*names):
            if place != path and (entry := self._view.entry(place)) is not None:
                return place, entry
        return path, ours

    def _begun(self, path: str, ours: Entry | None, theirs: Entry | None) -> Choice:
        """Of two memories that never were one, what one of them only began with gives way."""
        if _blob(theirs) in SEEDS:
            return Choice.OURS
        if _blob(ours) in SEEDS or self._nobody_changed(path):
            return Choice.THEIRS
        return Choice.BOTH

    def _nobody_changed(self, path: str) -> bool:
        head = self._view.head
        if head is None or path in self._view.pending:
            return False
        commits = list(islice(walk_back(self._repository, head), YOUNG + 1))
        if len(commits) > YOUNG:
            return False
        authors = {
            commit.author.name
            for commit in commits
            if all(id_at(commit.tree, path) != id_at(parent.tree, path) for parent in commit.parents)
            and id_at(commit.tree, path) is not None
        }
        return authors <= BEGINNERS

    def _join(self, path: str, ours: Entry, theirs: Entry, rule: Rule) -> None:
        before = self._view.blob(ours)
        text, whole = join(before, self._repository.data(theirs.blob))
        if not whole:
            self._conflict(path, "a message of this conversation differs")
        content = self._ruled(path, text, rule)
        if content is not None and content != before:
            self.merged.files[path] = content
            self.merged.joined.append(path)

    def _ruled(self, path: str, data: bytes, rule: Rule) -> bytes | None:
        """What may stand there; None when nothing may, which is told."""
        try:
            return rule(path, data)
        except Exception as error:
            why = getattr(error, "message", "a rule of this memory failed")
            self.merged.gaps.append(Gap(what=path, why=f"it was not taken over: {why}"))
            return None

    def _tell(self, path: str, ours: Entry | None, theirs: Entry | None) -> None:
        if theirs is None:
            self._conflict(path, "deleted there and changed here: it stays")
        elif ours is None:
            self._conflict(path, "changed there and deleted here: it stays deleted")
        else:
            self._conflict(path, "changed there and here: this memory's text stays")

    def _conflict(self, path: str, what: str) -> None:
        self.merged.conflicts.append(ImportConflict(path=path, what=what, version=str(self._theirs.id)))


def _blob(entry: Entry | None) -> str | None:
    return None if entry is None else str(entry.blob)
