"""The author, conversation and turn of each line of a file. Read-only.

From the newest state back, each commit that touched the file is assigned the lines that did not exist before
it, and passes the others on to its parents. A moved file is followed to its former path.
"""

from bisect import bisect_right
from collections.abc import Iterator
from heapq import heappop, heappush

import pygit2
from pygit2.enums import DeltaStatus

from trunkline.api.bus import Refusal
from trunkline.api.store import BlamedLines, MemoryBlame, file_not_found, path_refusal
from trunkline_git_store.commit_batch import parse_origin, parse_reason
from trunkline_git_store.history.line_diff import MatchingLines, count_lines, matching_lines, split_lines
from trunkline_git_store.history.path_index import CommitPosition, PathHistory
from trunkline_git_store.repository import BlobEntry, commit_time, entry_at

Lines = dict[int, int]
"""Each line of the text that was asked about, and which line of an earlier state it was; both count from 0."""


def blame(
    steps: PathHistory, path: str, version: str | None, first: int, last: int | None, mainline: bool = False
) -> MemoryBlame:
    """The commits of the lines ``first`` to ``last`` (counted from 1; None: to the end).

    With ``mainline`` only first parents are followed, and no moves: a merge is the author of what it brought in.

    Raises:
        Refusal: ``not_found``, or ``invalid_path`` for a file that is no text.
    """
    repository = steps.repository
    commit = steps.version(version)
    place = steps.position(commit.id)
    if place is None:
        raise Refusal("not_found", f"Version {str(commit.id)[:10]} is not in the history of memory.")
    entry = entry_at(commit.tree, path)
    if entry is None:
        raise file_not_found(path)
    data = repository.data(entry.blob)
    wanted = range(count_lines(data))[max(0, first - 1) : last]
    found = _BlameSearch(steps, mainline).search(path, place, {line: line for line in wanted})
    return MemoryBlame(path=path, version=str(commit.id), spans=tuple(_spans(path, data, found, steps)))


def _spans(
    path: str, data: bytes, commits: dict[int, pygit2.Oid], steps: PathHistory
) -> Iterator[BlamedLines]:
    """Neighbouring lines of one commit together."""
    texts, group = split_lines(data), list[int]()
    for line in sorted(commits):
        if group and (line != group[-1] + 1 or commits[line] != commits[group[0]]):
            yield _span(path, texts, group, steps.repository.commit(commits[group[0]]))
            group = []
        group.append(line)
    if group:
        yield _span(path, texts, group, steps.repository.commit(commits[group[0]]))


def _span(path: str, texts: list[bytes], group: list[int], commit: pygit2.Commit) -> BlamedLines:
    origin = parse_origin(commit)
    try:
        lines = tuple(texts[line].decode().removesuffix("\n") for line in group)
    except UnicodeDecodeError:
        raise path_refusal(path, "it is not a text file") from None
    return BlamedLines(
        first=group[0] + 1,
        lines=lines,
        version=str(commit.id),
        author=origin.actor,
        conversation=origin.conversation,
        turn=origin.turn,
        message=parse_reason(commit.message),
        timestamp=commit_time(commit),
    )


class _BlameSearch:
    """A blame search, newest commit first: lines that several children pass to a parent are searched together."""

    def __init__(self, steps: PathHistory, mainline: bool) -> None:
        self._steps = steps
        self._mainline = mainline
        self._repository = steps.repository
        self._found: dict[int, pygit2.Oid] = {}
        self._open: dict[tuple[CommitPosition, str], Lines] = {}
        self._order: list[tuple[int, CommitPosition, str]] = []

    def search(self, path: str, place: CommitPosition, lines: Lines) -> dict[int, pygit2.Oid]:
        """The commit of each line."""
        self._queue_lines(place, path, lines)
        while self._order:
            _, place, path = heappop(self._order)
            self._search_segment(place, path, self._open.pop((place, path)))
        return self._found

    def _queue_lines(self, place: CommitPosition, path: str, lines: Lines) -> None:
        if not lines:
            return
        if (place, path) not in self._open:
            heappush(self._order, (-place.number, place, path))
        self._open.setdefault((place, path), {}).update(lines)

    def _search_segment(self, place: CommitPosition, path: str, lines: Lines) -> None:
        step = self._steps.last_change_in_segment(path, place)
        if step is not None:
            self._split_lines(self._repository.commit(step), path, lines)
            return
        above = self._steps.parents(place.segment)
        states = [entry_at(self._repository.commit(parent).tree, path) for parent in above]
        now = self._state(place, path, states)
        if self._mainline and states[0] != now:  # it came with a merge
            self._split_lines(self._repository.commit(self._steps.first_commit(place.segment)), path, lines)
            return
        same = next(parent for parent, state in zip(above, states, strict=True) if state == now)
        self._queue_lines(self._placed(same), path, lines)

    def _state(self, place: CommitPosition, path: str, states: list[BlobEntry | None]) -> BlobEntry | None:
        """Return the state of a path in a segment that did not touch it: that of a parent of its first
        commit."""
        if len(states) == 1:
            return states[0]
        return entry_at(self._repository.commit(self._steps.first_commit(place.segment)).tree, path)

    def _split_lines(self, commit: pygit2.Commit, path: str, lines: Lines) -> None:
        """Hand on what was there before; the rest is the commit's."""
        entry = entry_at(commit.tree, path)
        assert entry is not None
        data = self._repository.data(entry.blob)
        for parent in commit.parents[:1] if self._mainline else commit.parents:
            before, earlier = path, entry_at(parent.tree, path)
            if earlier is None and not self._mainline:
                before = _moved_from(parent, commit, path)
                earlier = entry_at(parent.tree, before) if before else None
            if earlier is None:
                continue
            handed = _unchanged_lines(lines, matching_lines(self._repository.data(earlier.blob), data))
            lines = {line: at for line, at in lines.items() if line not in handed}
            self._queue_lines(self._placed(parent.id), before, handed)
        self._found.update(dict.fromkeys(lines, commit.id))

    def _placed(self, commit: pygit2.Oid) -> CommitPosition:
        place = self._steps.position(commit)
        assert place is not None
        return place


def _unchanged_lines(lines: Lines, same: Iterator[MatchingLines]) -> Lines:
    """The lines that stand in the older text too, and where."""
    order = list(same)
    found: Lines = {}
    for line, at in lines.items():
        number = bisect_right(order, at, key=lambda run: run.new) - 1
        if number >= 0 and at < order[number].new + order[number].length:
            found[line] = at - order[number].new + order[number].old
    return found


def _moved_from(parent: pygit2.Commit, commit: pygit2.Commit, path: str) -> str:
    """Return the former path of a file that is new in a commit; "" when there was none."""
    found = parent.tree.diff_to_tree(commit.tree)
    if any(delta.status == DeltaStatus.DELETED for delta in found.deltas):
        found.find_similar()
    for delta in found.deltas:
        if delta.status == DeltaStatus.RENAMED and delta.new_file.path == path:
            return str(delta.old_file.path)
    return ""
