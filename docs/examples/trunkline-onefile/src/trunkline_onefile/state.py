"""The state that follows from the records: current files, history and search. No disk, no
waiting.
"""

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from trunkline import MemoryEntry, MemoryFile, MemoryHit
from trunkline.api.bus import Refusal
from trunkline.api.memory import MemoryChange, SearchMemory
from trunkline.api.store import (
    BlamedLines,
    FileDifference,
    MemoryBlame,
    MemoryDifference,
    decode_text,
    file_not_found,
    is_under,
    parents,
    parse_conversation_path,
    path_refusal,
)
from trunkline_onefile.conversation import Conversation
from trunkline_onefile.records import MemoryRecord

CONTEXT_LINES = 2


class HeldFile(NamedTuple):
    """A current file: its content, and the time of its last change."""

    data: bytes
    time: datetime

    @property
    def hash(self) -> str:
        """The hash that ``expected`` is compared with."""
        return hashlib.sha256(self.data).hexdigest()


class MemoryState:
    """A memory in main memory, computed from its records."""

    def __init__(self, records: Iterable[MemoryRecord]) -> None:
        self.files: dict[str, HeldFile] = {}
        self.records: list[MemoryRecord] = []
        self._numbers: dict[str, int] = {}
        for record in records:
            self.apply(record)

    @property
    def head(self) -> str:
        """The newest version; "" before the first."""
        return self.records[-1].version if self.records else ""

    def apply(self, record: MemoryRecord) -> None:
        """Apply a record to the files."""
        self._numbers[record.version] = len(self.records)
        self.records.append(record)
        for path in record.paths:
            data = _after(record, path, self.data(path))
            if data is None:
                del self.files[path]
            else:
                self.files[path] = HeldFile(data, record.time)

    def data(self, path: str) -> bytes | None:
        """Return the bytes at a path; None when there is no file."""
        held = self.files.get(path)
        return None if held is None else held.data

    def existing(self, path: str) -> HeldFile:
        """Return the file at a path. Raises Refusal ``not_found``."""
        if path not in self.files:
            raise file_not_found(path)
        return self.files[path]

    def files_at(self, path: str) -> dict[str, bytes]:
        """Return the file at a path, or all files of a folder. Raises Refusal ``not_found``."""
        found = {at: held.data for at, held in self.files.items() if is_under(at, path)}
        if not found:
            raise file_not_found(path)
        return found

    def require_free(self, path: str) -> None:
        """Raise Refusal ``invalid_path`` when the path is a folder, or when one of its parents is
        a file.
        """
        above = next((one for one in parents(path) if one in self.files), None)
        if above is not None:
            raise path_refusal(path, f"{above!r} is a file, not a folder")
        if path not in self.files and any(is_under(at, path) for at in self.files):
            raise path_refusal(path, "it is a folder")

    def require_hash(self, path: str, expected: str | None) -> None:
        """Raise Refusal ``write_conflict`` when a file's hash is not the expected one; "" expects
        no file.
        """
        now = self.files[path].hash if path in self.files else ""
        if expected is not None and expected != now:
            said = (
                "it was changed since" if now and expected else "it exists already" if now else "it is gone"
            )
            raise Refusal("write_conflict", f"{path!r} was not written: {said}. Read it again and decide.")

    def read(self, path: str, version: str | None) -> MemoryFile:
        """Return a file's text, current or at a version."""
        held = self.files.get(path)
        if version is not None:
            number = self.number(version)
            data = self._states(path)[number + 1]
            held = None if data is None else HeldFile(data, self.records[number].time)
        if held is None:
            raise file_not_found(path)
        return MemoryFile(
            path=path, content=decode_text(path, held.data), hash=held.hash, modified_at=held.time
        )

    def entries(self, above: str, *, recursive: bool) -> tuple[MemoryEntry, ...]:
        """Return the entries of a folder, sorted by name."""
        if above in self.files:
            raise path_refusal(above, "it is a file, not a folder")
        found: dict[str, MemoryEntry] = {}
        for file, held in self.files.items():
            for name in (file, *parents(file)):
                if name != above and is_under(name, above):
                    kind, size = ("file", len(held.data)) if name == file else ("folder", 0)
                    entry = MemoryEntry(path=name, kind=kind, size=size, modified_at=held.time)  # type: ignore[arg-type]
                    found.setdefault(name, entry)
        if above and not found:
            raise Refusal("not_found", f"There is no folder {above!r} in memory.")
        depth = above.count("/") + bool(above)
        return tuple(found[name] for name in sorted(found) if recursive or name.count("/") == depth)

    # History -------------------------------------------------------------------------------------

    def number(self, version: str | None) -> int:
        """Return the number of a version; that of the newest for None. Raises Refusal
        ``not_found``.
        """
        number = len(self.records) - 1 if version is None else self._numbers.get(version, -1)
        if number < 0:
            raise Refusal("not_found", f"Memory has no version {(version or 'at all')[:64]!r}.")
        return number

    def _states(self, path: str) -> list[bytes | None]:
        """Return the content of a path before each record, followed by its current content."""
        states: list[bytes | None] = [None]
        for record in self.records:
            states.append(_after(record, path, states[-1]) if path in record.paths else states[-1])
        return states

    def history(self, path: str) -> list[MemoryChange]:
        """Return the changes at a path, newest first. Raises Refusal ``not_found`` when there are
        none.
        """
        states = self._states(path)
        found = [
            MemoryChange(
                version=record.version,
                message=record.reason,
                author=record.actor,
                timestamp=record.time,
                previous=None if (before := states[number]) is None else before.decode("utf-8", "replace"),
            )
            for number, record in enumerate(self.records)
            if any(is_under(changed, path) for changed in record.paths)
        ]
        if not found:
            raise Refusal("not_found", f"There was never anything at {path!r} in memory.")
        return found[::-1]

    def blame(self, path: str, number: int, first: int, last: int | None) -> MemoryBlame:
        """Return the author of each line of a file, as it was after a record."""
        states = self._states(path)
        if (data := states[number + 1]) is None:
            raise file_not_found(path)
        text = _lines(data)
        open_ = {line: line for line in range(len(text))[max(0, first - 1) : last]}
        found: dict[int, MemoryRecord] = {}
        for at in range(number, -1, -1):
            kept = _kept(_lines(states[at] or b""), _lines(states[at + 1] or b""))
            found.update({line: self.records[at] for line, now in open_.items() if now not in kept})
            open_ = {line: kept[now] for line, now in open_.items() if now in kept}
        spans = tuple(
            BlamedLines(
                first=line + 1,
                lines=(text[line].removesuffix("\n"),),
                version=record.version,
                author=record.actor,
                conversation=record.conversation,
                turn=record.turn,
                message=record.reason,
                timestamp=record.time,
            )
            for line, record in sorted(found.items())
        )
        return MemoryBlame(path=path, version=self.records[number].version, spans=spans)

    def difference(self, path: str, old: int, new: int) -> MemoryDifference:
        """Return the differences at a path between the states after two records; -1 is the state
        before the first.
        """
        files, texts = [], []
        for file in self._paths_under(path):
            states = self._states(file)
            before, after = states[old + 1], states[new + 1]
            if before == after:
                continue
            patch = [
                *difflib.unified_diff(_lines(before or b""), _lines(after or b""), f"a/{file}", f"b/{file}")
            ]
            added, removed = (sum(line[0] == sign for line in patch[2:]) for sign in "+-")
            kind = "added" if before is None else "deleted" if after is None else "changed"
            files.append(FileDifference(path=file, kind=kind, added=added, removed=removed))  # type: ignore[arg-type]
            texts.append("".join(patch))
        names = ["" if number < 0 else self.records[number].version for number in (old, new)]
        return MemoryDifference(
            path=path, old=names[0], new=names[1], files=tuple(files), text="".join(texts)
        )

    def last_change(self, path: str, until: int) -> int:
        """Return the newest record, up to the given one, that changed a path. Raises Refusal
        ``not_found``.
        """
        for number in range(until, -1, -1):
            if any(is_under(changed, path) for changed in self.records[number].paths):
                return number
        raise Refusal("not_found", f"There was never anything at {path!r} in memory.")

    def taken_back(self, path: str, number: int) -> dict[str, bytes | None]:
        """Return the files after undoing a record's changes at a path.

        Raises Refusal ``not_found`` when the record changed nothing there, and ``write_conflict``
        when a later record changed the same files.
        """
        record = self.records[number]
        files: dict[str, bytes | None] = {}
        for file in (one for one in record.paths if is_under(one, path)):
            states = self._states(file)
            if states[number + 1] != states[-1]:
                raise Refusal(
                    "write_conflict", f"{file!r} was changed again after that. Nothing was reverted."
                )
            files[file] = states[number]
        if not files:
            raise Refusal("not_found", f"Version {record.version} did nothing at {path!r}.")
        return files

    def restored(self, path: str, number: int) -> dict[str, bytes | None]:
        """Return the files after restoring a path to its state after a record. Raises Refusal
        ``not_found``.
        """
        files = {file: self._states(file)[number + 1] for file in self._paths_under(path)}
        if path and all(data is None for data in files.values()):
            raise Refusal(
                "not_found", f"There was nothing at {path!r} in version {self.records[number].version}."
            )
        return files

    def _paths_under(self, path: str) -> list[str]:
        return sorted({file for one in self.records for file in one.paths if is_under(file, path)})

    # Search --------------------------------------------------------------------------------------

    def conversations(self) -> Iterator[Conversation]:
        """Yield all conversations."""
        for path, held in list(self.files.items()):
            if parse_conversation_path(path):
                yield Conversation.parse(held.data)

    def search(self, query: SearchMemory, above: str) -> tuple[MemoryHit, ...]:
        """Return the best line of each file that contains words of the query, best first."""
        inside = {path: held for path, held in self.files.items() if is_under(path, above)}
        words = [word.casefold() for word in re.findall(r"\w+", query.query)]
        best: Callable[[str, bytes], Iterable[MemoryHit]] = (
            (lambda path, data: _best_line(path, data, words))
            if query.kind != "filename"
            else (lambda path, data: _named(path, words))
        )
        hits = [hit for path, held in inside.items() for hit in best(path, held.data)] if words else []
        hits.sort(key=lambda hit: (-hit.score, hit.path))
        return tuple(hits[: max(0, query.limit)])


def _after(record: MemoryRecord, path: str, before: bytes | None) -> bytes | None:
    """Return the content of a changed path after a record."""
    return record.files[path] if path in record.files else (before or b"") + record.grown[path]


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines(keepends=True)


def _kept(old: list[str], new: list[str]) -> dict[int, int]:
    """Return the lines of the new text that the old text also has, as a map from new to old line
    numbers.
    """
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {block.b + step: block.a + step for block in blocks for step in range(block.size)}


def _named(path: str, words: list[str]) -> Iterator[MemoryHit]:
    name = path.rpartition("/")[2].casefold()
    if all(word in path.casefold() for word in words):
        score = sum(word in name for word in words) / len(words)
        yield MemoryHit(path=path, line=1, content=path, context="", score=score)


def _best_line(path: str, data: bytes, words: list[str]) -> Iterator[MemoryHit]:
    """Yield the line that contains the most words. The score also counts the words in the whole
    file.
    """
    if parse_conversation_path(path):
        numbered = Conversation.parse(data).evidence
    else:
        numbered = [*enumerate(data.decode("utf-8", "replace").split("\n"), 1)]
    texts = [text for _, text in numbered]
    best = max(range(len(texts)), key=lambda at: (_count(texts[at], words), -at), default=0)
    if held := _count("\n".join(texts), words):
        context = "\n".join(texts[max(0, best - CONTEXT_LINES) : best + CONTEXT_LINES + 1])
        score = (held + _count(texts[best], words) / 2) / len(words)
        yield MemoryHit(path=path, line=numbered[best][0], content=texts[best], context=context, score=score)


def _count(text: str, words: list[str]) -> int:
    folded = text.casefold()
    return sum(word in folded for word in words)
