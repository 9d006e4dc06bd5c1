"""Finds everything that a purge must remove, in every version of every file: under the given name, under
former names, in copies, and in derived files.

A file that now has another name stays and is reported: a file whose name was not given is never removed.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

import pygit2

from trunkline.api.memory import Purge, RemainingCopy
from trunkline.api.store import (
    TextMatcher,
    conversation_of,
    conversation_of_attachment,
    is_log_path,
    without_boilerplate,
)
from trunkline_git_store.conversations import parse
from trunkline_git_store.purge.target import Target
from trunkline_git_store.purge.version_index import Version, VersionIndex

Edits = dict[str, dict[bytes, bytes | None]]
"""The new content of versions of paths, by the raw ids of the old content; None for removal."""

FileFilter = Callable[[str, bytes, Purge], bytes | None]
"""Returns the rest of a file, given its path and content; None for removal."""

MAX_REPORTED = 200
"""The largest number of files that are reported one by one."""


@dataclass(frozen=True)
class PurgeScanResult:
    """The result of the scan.

    ``edits`` has for each path the new content of its versions, or None for removal. ``gone`` are the paths
    of which no version stays, ``there`` the present content of paths.
    """

    purge: Purge
    edits: Edits
    gone: frozenset[str]
    kept: tuple[RemainingCopy, ...]
    there: Mapping[str, bytes]

    @property
    def changed(self) -> frozenset[str]:
        """The paths of which some of what they held stays."""
        return frozenset(self.edits) - self.gone

    @property
    def versions(self) -> frozenset[tuple[str, str]]:
        """The versions of such paths that go."""
        return frozenset(
            (path, blob.hex())
            for path in self.changed
            for blob, left in self.edits[path].items()
            if left is None
        )

    def now(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the new content of the files that exist now; None for removal."""
        for path in sorted(self.there):
            if self.there[path] in self.edits.get(path, {}):
                yield path, self.edits[path][self.there[path]]


class PurgeScan:
    """Looks through the past for one target. ``known`` is what an earlier try, cut short, had found."""

    def __init__(self, versions: VersionIndex, target: Target, known: Purge) -> None:
        self._versions = versions
        self._target = target
        self._named = {path for path in versions.held if target.matches(path)}
        self._conversations = {found for path in self._named if (found := conversation_of(path))}
        self._conversations |= known.conversations
        self._purge = known
        self._named |= {
            path
            for path in versions.held
            if self._conversations & {conversation_of(path), conversation_of_attachment(path)}
        }
        self._removed_versions: set[Version] = set()
        self._naming: set[str] = set()

    def run(self, without: FileFilter) -> PurgeScanResult:
        """Find everything."""
        self._removed_versions = self._lineage()
        wording = TextMatcher(self._lines())
        self._removed_versions |= self._copies(wording)
        purge = Purge(
            target=self._purge.target,
            paths=frozenset(self._whole()) | self._purge.paths,
            conversations=frozenset(self._conversations),
            turns=self._turns() | self._purge.turns,
            lines=self._lines() | self._purge.lines,
            own=self._purge.own,
        )
        edits = self._edits(purge, without)
        gone = {
            path
            for path, left in edits.items()
            if self._versions.held[path] == {blob for blob in left if left[blob] is None}
        }
        reported = self._files_with_lines(purge, edits)
        kept = (*reported, *self._written(purge, gone | {one.where for one in reported}))
        return PurgeScanResult(purge, edits, frozenset(gone) | self._purge.paths, kept, self._versions.there)

    # What goes -----------------------------------------------------------------------------------------------

    def _lineage(self) -> set[Version]:
        """Every version under the names that were said, and under those that the files had before or got later."""
        found = {(path, blob) for path in self._named for blob in self._versions.held[path]}
        waiting = list(found)
        while waiting:
            for near in self._versions.related_versions(waiting.pop()) - found:
                if near in self._current_versions(near[0]):
                    continue
                found.add(near)
                waiting.append(near)
        return found

    def _current_versions(self, path: str) -> frozenset[Version]:
        """Return the present versions of a path that was not named."""
        return frozenset() if path in self._named else self._versions.current_versions(path)

    def _copies(self, wording: TextMatcher) -> set[Version]:
        """Versions of files that are not there any more, and consist of this text mostly. What was said in a
        conversation makes no file a copy of it."""
        if self._conversations:
            return set()
        blobs = {blob for _, blob in self._removed_versions if self._versions.data(blob).strip()}
        return {
            version
            for version in self._versions.versions()
            if version not in self._removed_versions
            and not _is_append_only(version[0])
            and (version[1] in blobs or wording.is_most_of(self._versions.lines(version[1])))
            and version not in self._current_versions(version[0])
        }

    def _whole(self) -> Iterator[str]:
        """The paths of which nothing is left."""
        for path in {path for path, _ in self._removed_versions}:
            if all((path, blob) in self._removed_versions for blob in self._versions.held[path]):
                yield path

    def _lines(self) -> frozenset[bytes]:
        lines: frozenset[bytes] = frozenset()
        ended = {
            path: self._versions.final_versions(path)
            for path, _ in self._removed_versions
            if _is_append_only(path)
        }
        blobs = {blob for path, blob in self._removed_versions if blob in ended.get(path, (blob,))}
        return without_boilerplate(lines.union(*map(self._versions.lines, blobs)), self._purge.own)

    def _turns(self) -> frozenset[str]:
        """The turns of the conversations: those that were stored, and those that changed memory."""
        found = {turn for one in self._conversations for turn in self._versions.turns.get(one, ())}
        for path in self._named:
            if conversation_of(path) in self._conversations:
                for blob in self._versions.final_versions(path):
                    messages = parse(path, self._versions.data(blob)).messages
                    found |= {message.turn for message in messages if message.turn}
        return frozenset(found)

    # What becomes something else -----------------------------------------------------------------------------

    def _edits(self, purge: Purge, without: FileFilter) -> Edits:
        edits: Edits = {}
        for path, blob in self._removed_versions:
            edits.setdefault(path, {})[blob] = None
        marks = [name.encode() for name in purge.conversations]
        marks += [path.rpartition("/")[2].encode() for path in purge.paths]
        for path, blob in self._versions.versions():
            if (path, blob) in self._removed_versions or conversation_of(path) is not None:
                continue
            data = self._versions.data(blob)
            if path.startswith("audit/") or any(mark in data for mark in marks):
                left = without(path, data, purge)
                if left != data:
                    edits.setdefault(path, {})[blob] = left
                elif self._versions.there.get(path) == blob:
                    self._naming.add(path)
        return edits

    # What is told --------------------------------------------------------------------------------------------

    def _files_with_lines(self, purge: Purge, edits: Edits) -> tuple[RemainingCopy, ...]:
        """Files that hold some of the same lines."""
        wording = TextMatcher(purge.lines)
        found: dict[str, int] = {}
        for path in self._versions.held:
            changed = edits.get(path, {})
            for blob in self._versions_to_search(path):
                left = changed.get(blob, blob)
                data = left if left is not blob else self._versions.data(blob)
                count = 0 if data is None else wording.count_lines(data)
                if count > found.get(path, 0):
                    found[path] = count
        reported = sorted(found, key=lambda path: (path not in self._versions.there, -found[path], path))
        kept = [self._describe(path, found[path]) for path in reported[:MAX_REPORTED]]
        if len(reported) > MAX_REPORTED:
            more = f"{len(reported) - MAX_REPORTED} more files hold lines of it."
            kept.append(RemainingCopy(where="memory", what=more))
        return tuple(kept)

    def _versions_to_search(self, path: str) -> frozenset[bytes]:
        """The versions to look at: all of them, but of what only grows those that it ended with."""
        return (
            self._versions.final_versions(path)
            if _is_append_only(path)
            else frozenset(self._versions.held[path])
        )

    def _describe(self, path: str, count: int) -> RemainingCopy:
        lines = f"{count} {'line' if count == 1 else 'lines'} of it"
        conversation = conversation_of(path)
        if conversation is not None:
            return RemainingCopy(
                where=path,
                what=f"It has {lines}.",
                conversation=conversation,
            )
        if path.startswith("audit/"):
            return RemainingCopy(
                where=path, what=f"It has {lines}. They are removed with the conversations that they name."
            )
        if path in self._versions.there:
            return RemainingCopy(
                where=path, what=f"It has {lines}, now or in its history. Purge it as well, by this path."
            )
        return RemainingCopy(
            where=path,
            what=f"History has {lines} in this file, which no longer exists. Purge it by this path.",
        )

    def _written(self, purge: Purge, known: Set[str]) -> Iterator[RemainingCopy]:
        """Files that were written in the conversations, or name one, and are not theirs. Of ``known`` ones enough is
        said."""
        paths = {path for one in purge.conversations for path in self._versions.written.get(one, ())}
        for path in sorted(paths - known)[:MAX_REPORTED]:
            yield RemainingCopy(
                where=path,
                what="It was written in the conversation and may repeat it. Purge it by this path.",
            )
        named = self._naming - paths - known if purge.conversations else set()
        for path in sorted(path for path in named if not is_log_path(path))[:MAX_REPORTED]:
            yield RemainingCopy(
                where=path, what="It names the conversation, and no plugin took anything out of it."
            )


def _is_append_only(path: str) -> bool:
    """Report whether a file only gets longer, so that its last version holds the ones before."""
    return conversation_of(path) is not None or is_log_path(path)


def write_edit_blobs(git: pygit2.Repository, edits: Edits) -> dict[str, dict[pygit2.Oid, pygit2.Oid | None]]:
    """The same with blobs in the repository."""
    return {
        path: {
            pygit2.Oid(raw=blob): None if left is None else git.create_blob(left)
            for blob, left in versions.items()
        }
        for path, versions in edits.items()
    }
