"""The past of a log: who wrote each line, what differs between two records, what to wish for to take one back."""

from collections.abc import Sequence

import pygit2

from trunkline.contracts.memory.messages import BlamedLines, FileDifference, MemoryBlame, MemoryDifference
from trunkline.workers.memory.history.line_diff import count_lines, matching_lines, split_lines
from trunkline.workers.memory.history.revert import FileStates, RevertPlan
from trunkline.workers.memory.log_record import MemoryRecord
from trunkline.workers.memory.paths import is_under
from trunkline_bus import Refusal

States = list[bytes | None]
"""What a path held before each record, and last what it holds now."""


class LogHistory:
    """Looks back over records, which are in order."""

    def __init__(self, records: Sequence[MemoryRecord]) -> None:
        self._records = records
        self._numbers = {record.version: number for number, record in enumerate(records)}

    def record_number(self, version: str | None) -> int:
        """The number of a record, the newest for None. Raises Refusal ``not_found``."""
        number = len(self._records) - 1 if version is None else self._numbers.get(version, -1)
        if number < 0:
            raise Refusal("not_found", f"Memory has no version {(version or 'at all')[:64]!r}.")
        return number

    def states(self, path: str) -> States:
        """What a path held before each record, and last what it holds now."""
        states: States = [None]
        for record in self._records:
            now = record.files.get(path, states[-1])
            states.append((now or b"") + record.grown[path] if path in record.grown else now)
        return states

    def last_change(self, path: str, until: int) -> int:
        """The newest record up to one that touched a path. Raises Refusal ``not_found``."""
        for number in range(until, -1, -1):
            if self._touched(number, path):
                return number
        raise Refusal("not_found", f"There was never anything at {path!r} in memory.")

    def blame(self, path: str, number: int, first: int, last: int | None) -> MemoryBlame:
        """Who wrote the lines of a file that was there after a record."""
        states = self.states(path)
        text = states[number + 1] or b""
        open_ = {line: line for line in range(count_lines(text))[max(0, first - 1) : last]}
        found: dict[int, int] = {}
        for at in range(number, -1, -1):
            if states[at] == states[at + 1]:
                continue
            kept = {
                run.new + step: run.old + step
                for run in matching_lines(states[at] or b"", states[at + 1] or b"")
                for step in range(run.length)
            }
            found.update({line: at for line, now in open_.items() if now not in kept})
            open_ = {line: kept[now] for line, now in open_.items() if now in kept}
        lines = split_lines(text)
        spans = tuple(self._span(line, lines[line], found[line]) for line in sorted(found))
        return MemoryBlame(path=path, version=self._records[number].version, spans=spans)

    def _span(self, line: int, text: bytes, number: int) -> BlamedLines:
        record = self._records[number]
        return BlamedLines(
            first=line + 1,
            lines=(text.decode("utf-8", "replace").removesuffix("\n"),),
            version=record.version,
            author=record.actor,
            conversation=record.conversation,
            turn=record.turn,
            message=record.reason,
            timestamp=record.time,
        )

    def difference(self, path: str, old: int, new: int) -> MemoryDifference:
        """What differs after two records; -1 is before the first."""
        files, texts = list[FileDifference](), list[str]()
        for file in self._files(path):
            states = self.states(file)
            before, after = states[old + 1], states[new + 1]
            if before != after:
                patch = pygit2.Patch.create_from(before or b"", after or b"", file, file)
                _, added, removed = patch.line_stats
                kind = "added" if before is None else "deleted" if after is None else "changed"
                files.append(FileDifference(path=file, kind=kind, added=added, removed=removed))  # type: ignore[arg-type]
                texts.append(patch.data.decode("utf-8", "replace"))
        names = ["" if number < 0 else self._records[number].version for number in (old, new)]
        return MemoryDifference(
            path=path, old=names[0], new=names[1], files=tuple(files), text="".join(texts)
        )

    def revert_plan(self, path: str, number: int) -> RevertPlan:
        """What a record did at a path. Raises Refusal ``not_found`` when that is nothing."""
        record = self._records[number]
        files = [file for file in (*record.files, *record.grown) if is_under(file, path)]
        if not files:
            raise Refusal("not_found", f"Version {record.version} did nothing at {path!r}.")
        states = {file: self._state(file, number, number + 1) for file in files}
        return RevertPlan(record.version, states, f"Take back {record.version}: {record.reason}")

    def restore_plan(self, path: str, number: int) -> RevertPlan:
        """What happened at a path since a record."""
        now = len(self._records)
        states = {file: self._state(file, number + 1, now) for file in self._files(path)}
        if path and all(state.before is None for state in states.values()):
            version = self._records[number].version
            raise Refusal("not_found", f"There was nothing at {path!r} in version {version}.")
        version = self._records[number].version
        changed = {file: state for file, state in states.items() if state.before != state.after}
        return RevertPlan(version, changed, f"Go back to {version}")

    def _state(self, file: str, before: int, after: int) -> FileStates:
        states = self.states(file)
        return FileStates(states[before], states[after])

    def _touched(self, number: int, path: str) -> bool:
        record = self._records[number]
        return any(is_under(changed, path) for changed in (*record.files, *record.grown))

    def _files(self, path: str) -> list[str]:
        names = {file for record in self._records for file in (*record.files, *record.grown)}
        return sorted(file for file in names if is_under(file, path))
