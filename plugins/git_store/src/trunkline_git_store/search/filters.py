"""The restrictions of a search, as a condition on passages.

The condition of a partial index is repeated in each condition, because SQLite uses such an index only when it
sees that no other rows are wanted.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import get_args

import apsw

from trunkline.api.memory import SearchMemory
from trunkline.api.store import Role
from trunkline_git_store.index.passage import to_micros

MAX_NARROW_PASSAGES = 20_000
"""Passages that are few enough to be looked at one by one."""


EXCLUDE_ASIDES = "NOT IN asides"
"""The condition on an id that leaves out what only asks or retells."""


class SearchFilter:
    """A condition on ``passages`` joined with ``files``."""

    def __init__(self, query: SearchMemory) -> None:
        self._parts: list[str] = []
        self.values: list[str | int | float] = []
        self._narrow: bool | None = None
        self._path(query.path)
        self._by_path = len(self._parts)
        self._one_of("passages.kind", query.kinds)
        self.evidence = not query.kinds
        """True to leave out passages that only ask or repeat."""
        for tag in query.tags:
            self._and("passages.id IN (SELECT passage FROM tags WHERE tag = ?)", tag.casefold())
        if query.speaker:
            self._speaker(query.speaker.casefold())
        if query.conversation:
            self._and("passages.conversation = ? AND passages.conversation != ''", query.conversation)
        self._times(query.since, query.until)
        if query.min_confidence:
            self._and("(passages.confidence IS NULL OR passages.confidence >= ?)", query.min_confidence)

    @property
    def is_restricted(self) -> bool:
        """Report whether anything is restricted."""
        return bool(self._parts)

    @property
    def restricts_more_than_path(self) -> bool:
        """Report whether something else than the path is restricted."""
        return len(self._parts) > self._by_path

    @property
    def condition(self) -> str:
        """The SQL after WHERE."""
        return (
            " AND ".join((*self._parts, *([f"passages.id {EXCLUDE_ASIDES}"] if self.evidence else []))) or "1"
        )

    @property
    def passages(self) -> str:
        """The SELECT of what is left."""
        joined = "passages JOIN files ON files.id = passages.file"
        return f"SELECT passages.id FROM {joined} WHERE {self.condition}"

    def is_narrow(self, connection: apsw.Connection) -> bool:
        """Report whether something is restricted, and few passages are left."""
        if self._narrow is None:
            count = f"SELECT count(*) FROM ({self.passages} LIMIT {MAX_NARROW_PASSAGES + 1})"
            self._narrow = self.is_restricted and bool(
                connection.execute(count, self.values).get <= MAX_NARROW_PASSAGES
            )
        return self._narrow

    def select_allowed(self, connection: apsw.Connection, passages: Iterable[int]) -> set[int]:
        """Return those of the passages that pass the filter."""
        among = f"{self.passages} AND passages.id IN (SELECT value FROM json_each(?))"
        return {row for (row,) in connection.execute(among, (*self.values, json.dumps(list(passages))))}

    def _and(self, part: str, *values: str | int | float) -> None:
        self._parts.append(part)
        self.values += values

    def _path(self, path: str) -> None:
        if path:
            below = "(files.path = ? OR (files.path > ? AND files.path < ?))"
            self._and(below, path, path + "/", path + "0")

    def _speaker(self, speaker: str) -> None:
        column = "role" if speaker in get_args(Role) else "speaker"
        self._and(f"passages.{column} = ? AND passages.{column} != ''", speaker)

    def _one_of(self, column: str, choices: Sequence[str]) -> None:
        if choices:
            self._and(f"{column} IN ({', '.join('?' * len(choices))})", *choices)

    def _times(self, since: datetime | None, until: datetime | None) -> None:
        if since is not None:
            self._and("passages.at >= ? AND passages.at != 0", to_micros(since))
        if until is not None:
            self._and("passages.at < ? AND passages.at != 0", to_micros(until))
