"""The log of purges, ``audit/purges.jsonl``, with one line for each purge.

A line is written before anything is removed, and updated when the purge is done. So an interrupted purge is known, and
an import of an older archive does not restore purged texts.
"""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline.contracts.memory.purge import PURGE_LOG_PATH, PurgeMemory
from trunkline.contracts.memory.purger import Purge
from trunkline.contracts.memory.store import Change, MemoryStore, PurgeResult
from trunkline_bus import Refusal, Scope, new_id


class PurgeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of one purge."""

    id: str = ""
    state: Literal["begun", "done"] = "done"
    time: datetime
    actor: str
    target: str
    paths: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    commits: int = 0
    reason: str = ""

    @property
    def purge(self) -> Purge:
        """The purge that the record describes."""
        return Purge(
            target=self.target,
            paths=frozenset(self.paths),
            conversations=frozenset(self.conversations),
            turns=frozenset(self.turns),
        )


def _lines(text: str) -> list[str]:
    """Return the lines of the log. Names and reasons may contain other characters that ``str.splitlines`` takes for
    line ends.
    """
    return [line for line in text.split("\n") if line]


def parse_purge_log(text: str) -> tuple[list[PurgeRecord], list[int]]:
    """Return the records in a text, and the numbers of the lines that are not records."""
    notes, damaged = [], []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            notes += [msgspec.json.decode(line, type=PurgeRecord)] if line.strip() else []
        except (msgspec.MsgspecError, RecursionError):
            damaged.append(number)
    return notes, damaged


class PurgeLog:
    """The purge log of one store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def all(self) -> tuple[list[PurgeRecord], list[int]]:
        """Return every record that can be read, and the numbers of the other lines."""
        return parse_purge_log(await self._text())

    async def unfinished(self, target: str) -> PurgeRecord | None:
        """Return the record of an interrupted purge of ``target``; None if there is none."""
        notes, _ = await self.all()
        found = [note for note in notes if note.state == "begun" and note.target == target]
        return found[-1] if found else None

    async def begin(self, request: PurgeMemory, purge: Purge, at: datetime, scope: Scope) -> PurgeRecord:
        """Record that a purge begins. A repeated purge continues under the record of the interrupted one."""
        earlier = await self.unfinished(request.target)
        note = PurgeRecord(
            id=earlier.id if earlier else new_id("purge"),
            state="begun",
            time=at,
            actor=request.actor,
            target=request.target,
            paths=tuple(sorted(purge.paths)),
            conversations=tuple(sorted(purge.conversations)),
            turns=tuple(sorted(purge.turns)),
            reason=request.reason,
        )
        await self._put(note, f"Begin the purge of {request.target}", scope)
        return note

    async def finish(self, note: PurgeRecord, purged: PurgeResult, scope: Scope) -> str:
        """Record the result of a purge, and return the version."""
        done = msgspec.structs.replace(
            note,
            state="done",
            paths=tuple(sorted({*note.paths, *purged.paths})),
            versions=purged.versions,
            changed=purged.changed,
            commits=purged.commits,
        )
        return await self._put(done, f"Note the purge of {note.target}", scope)

    async def _put(self, note: PurgeRecord, reason: str, scope: Scope) -> str:
        mark = f'"id":"{note.id}"'
        lines = [line for line in _lines(await self._text()) if mark not in line]
        text = "".join(f"{line}\n" for line in (*lines, msgspec.json.encode(note).decode()))
        return await self._store.change(
            Change({PURGE_LOG_PATH: text.encode()}, actor=note.actor, reason=reason, scope=scope)
        )

    async def _text(self) -> str:
        """Return the log; "" if there is none. Raises Refusal if the log cannot be read."""
        try:
            return (await self._store.read(PURGE_LOG_PATH)).content
        except Refusal as refusal:
            if refusal.code != "not_found":
                raise
            return ""
