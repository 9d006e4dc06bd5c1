"""The signal of words: BM25F over the text of passages, what stands around them, and their tags.

SQLite's BM25 selects some hundred passages, and BM25F orders them (``field_ranking``). SQLite takes about a microsecond
for a passage, so a word that is everywhere could cost a second by itself. What is scored is therefore bounded: the
rarer words choose, those that are in up to a tenth of all passages count along, and where all words are common the
newest passages are taken.
"""

import json
import math
from collections.abc import Sequence

import apsw

from trunkline_git_store.index.field_ranking import encode
from trunkline_git_store.search.filters import EXCLUDE_ASIDES, SearchFilter
from trunkline_git_store.search.terms import COUNTED, Term, all_of, any_of

SCORED, ALONG = 12_000, 120_000
"""Passages that are scored, about, and how many may have the words that count along."""

SELECTED = 200
"""Passages that BM25F orders, at least."""

WEIGHTS = "2.0, 1.0, 0.6, 8.0"
"""Of a word in the text, in what was said before it and after it, and among the tags, where SQLite's BM25 selects."""

MIN_RARITY = 1e-6
"""The weight of a word that is in more than half of all passages."""

_JOINED = "passages ON passages.id = words.rowid JOIN files ON files.id = passages.file"

Scores = dict[int, float]


def lexical_scores(
    connection: apsw.Connection, terms: Sequence[Term], filters: SearchFilter, limit: int
) -> Scores:
    """The best passages with their scores, above 0."""
    if not terms:
        return {}
    selected = _selected(connection, terms, filters, max(limit, SELECTED))
    best = sorted(selected.items(), key=lambda one: (-one[1], -one[0]))
    return dict(best[:limit])


def rarities(connection: apsw.Connection, terms: Sequence[Term]) -> list[float]:
    """Return what each term weighs: the logarithm of how rare it is, as SQLite's BM25 has it."""
    total = connection.execute("SELECT max(id) FROM passages").get or 0
    odds = ((total - term.passages + 0.5) / (term.passages + 0.5) for term in terms)
    return [max(MIN_RARITY, math.log(max(one, MIN_RARITY))) for one in odds]


def _selected(
    connection: apsw.Connection, terms: Sequence[Term], filters: SearchFilter, limit: int
) -> Scores:
    total = connection.execute("SELECT max(id) FROM passages").get or 0
    most = min(max(SCORED, total / 10), COUNTED - 1)
    counted = [term for term in terms if term.passages <= most]
    if filters.is_narrow(connection):
        return _scored(connection, any_of(counted or terms), terms, filters, limit)
    rare, common = _divided(counted)
    if rare:
        return _scored(connection, _expression(rare, common), terms, filters, limit)
    return _newest(connection, terms, filters, limit)


def _divided(terms: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """The words that choose, and those that count along."""
    rare, common, spent = list[Term](), list[Term](), 0
    for term in sorted(terms, key=lambda term: term.passages):
        spent += term.passages
        if spent <= ALONG:
            (rare if spent <= SCORED else common).append(term)
    return rare, common


def _expression(rare: Sequence[Term], common: Sequence[Term]) -> str:
    """Some rare word, and all of them counted. Each is counted twice where there are common ones: a condition counts
    too, and only so all weigh the same."""
    if not common:
        return any_of(rare)
    return f"({any_of(rare)}) AND ({any_of([*rare, *common, *common])})"


def _newest(connection: apsw.Connection, terms: Sequence[Term], filters: SearchFilter, limit: int) -> Scores:
    """Of words that are all common: passages with all of them, and the newest with one."""
    found: Scores = {}
    for expression in dict.fromkeys((all_of(terms), any_of(terms))):
        if len(found) < limit:
            oldest = _oldest_of(connection, expression)
            found = _scored(connection, expression, terms, filters, limit, oldest=oldest) | found
    return found


def _oldest_of(connection: apsw.Connection, expression: str) -> int:
    """The oldest of the newest passages that match."""
    newest = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
    return int(connection.execute(f"SELECT min(rowid) FROM ({newest})", (expression, SCORED)).get or 0)


def _scored(
    connection: apsw.Connection,
    expression: str,
    terms: Sequence[Term],
    filters: SearchFilter,
    limit: int,
    *,
    oldest: int = 0,
) -> Scores:
    """Return the passages that SQLite's BM25 prefers, each with its score by BM25F."""
    source, condition = "words", "words MATCH ? AND words.rowid >= ?"
    if filters.is_narrow(connection):
        condition += f" AND +words.rowid IN ({filters.passages})"
    elif filters.is_restricted:
        source, condition = f"words CROSS JOIN {_JOINED}", f"{condition} AND {filters.condition}"
    elif filters.evidence:
        condition += f" AND words.rowid {EXCLUDE_ASIDES}"
    rows = connection.execute(
        f"SELECT words.rowid FROM {source} WHERE {condition} "
        f"ORDER BY bm25(words, {WEIGHTS}), words.rowid DESC LIMIT ?",
        (expression, oldest, *filters.values, limit),
    )
    selected = sorted(row for (row,) in rows)
    if not selected:
        return {}
    weights = encode(zip(rarities(connection, terms), (term.stems for term in terms), strict=True))
    scored = connection.execute(  # "+" reads on from match to match: to seek each passage takes a hundred times as long
        "SELECT rowid, field_score(words, ?) FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? "
        "AND +rowid IN (SELECT value FROM json_each(?))",
        (weights, expression, selected[0], selected[-1], json.dumps(selected)),
    )
    return dict(scored)
