"""``field_score``: BM25F of a passage, as a function of the full-text table (Robertson, Zaragoza and Taylor 2004).

FTS5's own ``bm25`` knows one length for a row. A long turn would then make the short one beside it count as long. BM25F
compares each field with the mean length of that field, and lets a word saturate over all fields together. It is written
in Python and much slower, so it scores only what ``bm25`` has selected. What was measured is in
docs/explanation/recall.md.
"""

import json
from collections.abc import Iterable

import apsw

TEXT, BEFORE, AFTER, TAGS = range(4)
"""The columns of the table ``words``."""

WEIGHTS = (1.0, 0.5, 0.3, 4.0)
"""The weights of a word in each column."""

LENGTHS = (0.75, 0.5, 0.5, 0.75)
"""How much the length of each column counts, from 0 to 1 (``b``). That of neighbours counts less: their mean length
depends on how many passages have none."""

SATURATION, SATURATION_OF_TURNS = 1.2, 0.6
"""How slowly a word that is repeated stops to add (``k1``). In a turn with neighbours it counts most that a word is
there: it occurs in several of them anyway."""

ECHO = 0.5
"""The factor for a turn that has no other words than those that are searched for: it asks, or it repeats."""

ScoredTerm = tuple[float, tuple[str, ...]]
"""What a term weighs, and the stems by which it is found."""


def register(connection: apsw.Connection) -> None:
    """Add ``field_score(words, TERMS)`` to a connection. ``TERMS`` is what ``encode`` returns."""
    connection.register_fts5_function("field_score", _score)


def encode(terms: Iterable[ScoredTerm]) -> str:
    """Return terms as the function takes them."""
    return json.dumps(list(terms))


class _Query:
    """The terms of a search, their weights and phrases, and the mean lengths of the columns."""

    __slots__ = ("means", "phrases", "weights")

    def __init__(self, api: apsw.FTS5ExtensionApi, terms: str) -> None:
        decoded: list[tuple[float, list[str]]] = json.loads(terms)
        self.weights = [weight for weight, _ in decoded]
        owners = {stem: number for number, (_, stems) in enumerate(decoded) for stem in stems}
        self.phrases: list[tuple[int, int]] = []
        for phrase, tokens in enumerate(api.phrases):
            owner = owners.pop(tokens[0] or "", None)  # an expression may name a stem twice
            if owner is not None:
                self.phrases.append((phrase, owner))
        rows = max(1, api.row_count)
        self.means = [max(1.0, api.column_total_size(column) / rows) for column in range(len(WEIGHTS))]


def _score(api: apsw.FTS5ExtensionApi, /, *parameters: "apsw.SQLiteValue") -> float:
    query: _Query | None = api.aux_data
    if query is None:
        query = api.aux_data = _Query(api, str(parameters[0]))
    sizes = [api.column_size(column) for column in range(len(WEIGHTS))]
    shares = [
        weight / (1 - length + length * size / mean)
        for weight, length, size, mean in zip(WEIGHTS, LENGTHS, sizes, query.means, strict=True)
    ]
    counts = [0.0] * len(query.weights)
    own = 0
    for phrase, owner in query.phrases:
        places = api.phrase_locations(phrase)
        own += len(places[TEXT])
        counts[owner] += sum(share * len(found) for share, found in zip(shares, places, strict=True) if found)
    is_turn = sizes[BEFORE] or sizes[AFTER]
    k1 = SATURATION_OF_TURNS if is_turn else SATURATION
    score = sum(
        weight * count * (k1 + 1) / (count + k1) for weight, count in zip(query.weights, counts, strict=True)
    )
    return score * ECHO if is_turn and own == sizes[TEXT] else score
