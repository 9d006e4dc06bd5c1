"""A group of changes as a chain of commits: as few as tell apart who changed what in which turn.

Changes of one origin share a commit unless they touch the same places, so that every state that was acknowledged is
in history, and every line blames to its actor, conversation and turn.
"""

import re
from dataclasses import dataclass, field

import pygit2

from trunkline.api.bus import Scope
from trunkline.api.store import PURGED, MemoryChanged, parents
from trunkline_git_store.repository import BlobEntry, Repository

SUBJECT_CHARACTERS = 120
_TRAILERS = re.compile(r"\n*(?:^(?:Actor|Conversation|Turn): .*(?:\n|\Z))+\Z", re.MULTILINE)
TRAILERS_CHARACTERS = 2_000
"""Characters at the end of a message in which its trailers stand; a message may be of any length and from anybody."""

_TRAILER = re.compile(r"^(Actor|Conversation|Turn): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CommitOrigin:
    """The author of a change, with conversation and turn."""

    actor: str
    conversation: str | None = None
    turn: str | None = None

    @classmethod
    def from_scope(cls, actor: str, scope: Scope) -> "CommitOrigin":
        """Return the origin of an operation."""
        return cls(actor, scope.conversation, scope.turn)


@dataclass(slots=True)
class CommitDraft:
    """A commit that is being put together. ``version`` is set when it is written; ``joins`` is its second parent."""

    origin: CommitOrigin
    changes: dict[str, BlobEntry | None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    joins: pygit2.Oid | None = None
    version: str = ""

    def changed(self) -> MemoryChanged:
        """The fact to tell others."""
        return MemoryChanged(paths=tuple(self.changes), version=self.version, actor=self.origin.actor)


class CommitBatch:
    """The commits of a group, in order."""

    def __init__(self) -> None:
        self.drafts: list[CommitDraft] = []
        self._latest: dict[CommitOrigin, CommitDraft] = {}
        self._touched: set[str] = set()

    def add(
        self,
        origin: CommitOrigin,
        changes: dict[str, BlobEntry | None],
        reason: str,
        joins: pygit2.Oid | None = None,
    ) -> CommitDraft:
        """Take in changes; returns the commit that will hold them."""
        draft = self._latest.get(origin)
        if draft is None or joins is not None or self._overlaps(changes):
            draft = CommitDraft(origin, joins=joins)
            self.drafts.append(draft)
            self._latest[origin] = draft
        draft.changes.update(changes)
        if reason not in draft.reasons:
            draft.reasons.append(reason)
        for path in changes:
            self._touched.update((path, *(above + "/" for above in parents(path))))
        return draft

    def write(self, repository: Repository, head: pygit2.Oid | None) -> pygit2.Oid | None:
        """Write trees and commits; returns the last commit, or ``head`` when there is nothing to commit."""
        tree = None if head is None else repository.commit(head).tree_id
        for draft in self.drafts:
            tree = repository.write_tree(tree, draft.changes)
            author, message = _author(draft.origin.actor), _message(draft)
            head = repository.write_commit(head, tree, author, message, draft.joins)
            draft.version = str(head)
        return head

    def _overlaps(self, changes: dict[str, BlobEntry | None]) -> bool:
        """Report whether a path is touched already, or is a folder of one that is, or lies below one."""
        return any(
            path in self._touched
            or path + "/" in self._touched
            or any(above in self._touched for above in parents(path))
            for path in changes
        )


def parse_origin(commit: pygit2.Commit) -> CommitOrigin:
    """Return the origin of a commit from its trailers; for a commit that a person made with git, its
    author."""
    found = _TRAILERS.search(commit.message[-TRAILERS_CHARACTERS:])
    said = dict(_TRAILER.findall(found.group())) if found else {}
    return CommitOrigin(said.get("Actor", commit.author.name), said.get("Conversation"), said.get("Turn"))


def parse_reason(message: str) -> str:
    """A commit's message without the trailers."""
    return (message[:-TRAILERS_CHARACTERS] + _TRAILERS.sub("", message[-TRAILERS_CHARACTERS:])).strip()


def trailers_only(message: str) -> str:
    """A commit's message without its words: what it says of who made it, and where, stays."""
    found = _TRAILERS.search(message[-TRAILERS_CHARACTERS:])
    return f"{PURGED}\n\n{found.group().strip()}\n" if found else f"{PURGED}\n"


def _message(draft: CommitDraft) -> str:
    lines = [_subject(reason) for reason in draft.reasons]
    if len(lines) == 1:
        subject, _, body = draft.reasons[0].partition("\n")
        text = _subject(subject) + (f"\n\n{body.strip()}" if body.strip() else "")
    else:
        text = f"{len(lines)} changes\n\n" + "\n".join(f"* {line}" for line in lines)
    origin = draft.origin
    trailers = {"Actor": origin.actor, "Conversation": origin.conversation, "Turn": origin.turn}
    return f"{text}\n\n" + "".join(f"{key}: {_subject(value)}\n" for key, value in trailers.items() if value)


def _subject(text: str) -> str:
    line = " ".join(text.split("\n", 1)[0].replace("\0", " ").split())
    return line if len(line) <= SUBJECT_CHARACTERS else line[: SUBJECT_CHARACTERS - 1] + "…"


def _author(actor: str) -> str:
    plain = "".join(letter for letter in actor if letter.isprintable() and letter not in "<>")
    return plain.strip(" .,:;\"'")[:80] or "unknown"
