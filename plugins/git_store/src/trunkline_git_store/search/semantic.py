"""The signal of meaning: how alike a passage and the question are, by their vectors.

A turn is as alike as it and what was said around it, fading with the distance, as with words.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Protocol

import apsw
import msgspec

from trunkline_git_store.index.conversation import NEIGHBOUR_TIME
from trunkline_git_store.vectors.vector_store import COSINE, Scores, VectorStore

SEMANTIC_WEIGHT = 0.7
"""The weight of meaning relative to words: both are about 1 for a good hit. Measured in
docs/explanation/recall.md."""

_NEIGHBOUR_WEIGHTS = {0: 1.0, -1: 0.6, -2: 0.3, 1: 0.4, 2: 0.2}
"""The weights of the turns before and after, by their distance in lines."""

_NEAR = f"""
SELECT here.id, there.line - here.line, {COSINE.format("known.vector")}
FROM json_each(?) CROSS JOIN passages AS here ON here.id = value
JOIN passages AS there ON there.file = here.file AND there.line BETWEEN here.line - 2 AND here.line + 2
  AND (there.id = here.id OR (here.kind = 'turn' AND abs(there.at - here.at) <= ?))
JOIN vectors.known AS known ON known.id = there.vector AND known.vector IS NOT NULL
"""
_NEAR_MICROS = round(NEIGHBOUR_TIME.total_seconds() * 1_000_000)


class PassageFilter(Protocol):
    """The passages that may be found: a SELECT of their ids that ends in its conditions, and its values."""

    @property
    def passages(self) -> str: ...
    @property
    def values(self) -> Sequence[str | int | float]: ...
    def is_narrow(self, connection: apsw.Connection) -> bool:
        """Report whether they are few enough to be looked at one by one."""
        ...


class QueryVector(msgspec.Struct, frozen=True):
    """The query as a vector. ``least`` is the similarity from which a passage is found by meaning alone."""

    space: VectorStore
    vector: bytes
    least: float

    def nearest(self, connection: apsw.Connection, filters: PassageFilter, limit: int) -> set[int]:
        """The passages that are most alike."""
        if not self.space.accepts(connection, self.vector):
            return set()
        if filters.is_narrow(connection):
            return self._nearest_exact(connection, filters, limit)
        found = self.space.nearest(connection, self.vector, limit)
        close = json.dumps([row for row, alike in found.items() if alike >= self.least])
        these = f"{filters.passages} AND passages.vector IN (SELECT value FROM json_each(?)) AND passages.vector > 0"
        return {row for (row,) in connection.execute(these, (*filters.values, close))}

    def similarities(self, connection: apsw.Connection, passages: Iterable[int]) -> Scores:
        """Return the similarity of passages, including their neighbours; those without a vector are left
        out."""
        sums: dict[int, tuple[float, float]] = {}
        if self.space.accepts(connection, self.vector):
            values = (self.vector, json.dumps(list(passages)), _NEAR_MICROS)
            for row, distance, alike in connection.execute(_NEAR, values):
                total, weight = sums.get(row, (0.0, 0.0))
                share = _NEIGHBOUR_WEIGHTS[distance]
                sums[row] = total + share * alike, weight + share
        return {row: total / weight for row, (total, weight) in sums.items()}

    def _nearest_exact(self, connection: apsw.Connection, filters: PassageFilter, limit: int) -> set[int]:
        """Of few passages each is looked at."""
        rows = connection.execute(
            f"SELECT passages.id, {COSINE.format('known.vector')} AS alike FROM passages "
            "JOIN vectors.known AS known ON known.id = passages.vector AND known.vector IS NOT NULL "
            f"WHERE passages.id IN ({filters.passages}) AND alike >= ? ORDER BY alike DESC LIMIT ?",
            (self.vector, *filters.values, self.least, limit),
        )
        return {row for row, _ in rows}
