"""Recall: which chunks may answer a question, from the search engine's words, and then which do best, without a model.

What the words of a question are (their stems, what a misspelt one meant) and where they stand is the search engine's;
the order is RLM-F10's.
"""

from datetime import datetime

import apsw

from trunkline.memory.chunks.finding import ROW, Contents, Row, Sight, first_of_each, note_use, row_of, shown
from trunkline.memory.chunks.ranking import SYNONYM, Candidate, Wanted, Weighed, synonyms, weigh
from trunkline.memory.index.passage import micros
from trunkline.memory.search.lexical import WEIGHTS
from trunkline.memory.search.terms import Term, any_of, asked, terms_of
from trunkline.memory.words.stems import Stems
from trunkline.messages.chunks import Chunk, Recall, Recalled, RecalledChunk

CANDIDATES = 60
"""Chunks that are weighed, at least: the best by BM25."""

VISITED = 20
"""How many of those that were weighed are told."""


def recall(
    connection: apsw.Connection, contents: Contents, stems: Stems, sight: Sight, wish: Recall, now: datetime
) -> Recalled:
    """The chunks that answer best; equal ones by confidence, then the newer first."""
    terms = terms_of(connection, stems, wish.query) if wish.max_results else []
    same = _synonyms(connection, stems, wish.query)
    rows = first_of_each(_candidates(connection, sight, wish, [*terms, *same]), sight)
    found = list(shown(connection, contents, rows))
    wanted = [Wanted(term.stems, alike=term.instead == "spelled") for term in terms]
    wanted += [Wanted(term.stems, weight=SYNONYM) for term in same]
    phrase = stems.of_text(wish.query)[1]
    weighed = weigh(phrase, wanted, [_candidate(stems, chunk, now) for chunk in found])
    ordered = sorted((pair for pair in zip(found, weighed, strict=True) if pair[1].score > 0), key=_order)
    best = ordered[: wish.max_results]
    note_use(connection, [chunk.id for chunk, _ in best], now)
    return Recalled(
        answer=best[0][0].content if best else "",
        confidence=_sureness(best[0], terms, wish.query) if best else 0.0,
        source_chunks=tuple(chunk.id for chunk, _ in best),
        traversal_path=tuple(chunk.id for chunk, _ in ordered[:VISITED]),
        chunks=tuple(RecalledChunk(chunk=chunk, score=one.score, why=one.why) for chunk, one in best),
    )


def _candidate(stems: Stems, chunk: Chunk, now: datetime) -> Candidate:
    tags = frozenset(stem for tag in chunk.tags for stem in stems.of_text(tag)[1].split())
    age = micros(now) - micros(chunk.metadata.created_at)
    return Candidate(stems.of_text(chunk.content)[1], tags, chunk.metadata.confidence, age)


def _order(pair: tuple[Chunk, Weighed]) -> tuple[float, float, int, str]:
    chunk, weighed = pair
    return -weighed.score, -chunk.metadata.confidence, -micros(chunk.metadata.created_at), chunk.id


def _sureness(pair: tuple[Chunk, Weighed], terms: list[Term], query: str) -> float:
    """How far to trust the best chunk: its own confidence, as far as it covers the question. Words that memory has
    nowhere were asked for as well."""
    chunk, weighed = pair
    known = len(terms) / max(1, len(asked(query)))
    return round(chunk.metadata.confidence * weighed.cover * known, 4)


def _synonyms(connection: apsw.Connection, stems: Stems, query: str) -> list[Term]:
    """Terms that mean the same as words of the question; only such as memory has."""
    words = " ".join(sorted({other for word in asked(query) for other in synonyms(word)} - set(asked(query))))
    return [term for term in terms_of(connection, stems, words) if not term.instead] if words else []


def _candidates(connection: apsw.Connection, sight: Sight, wish: Recall, terms: list[Term]) -> list[Row]:
    """The chunks that have some of the words, the best first."""
    if not terms or not sight.folders:
        return []
    where, seen = sight.condition()
    more, values = _filters(wish)
    best = (
        "SELECT words.rowid AS best FROM words CROSS JOIN chunks ON chunks.passage = words.rowid"
        f" WHERE words MATCH ? AND {where} AND {more} ORDER BY bm25(words, {WEIGHTS}) LIMIT ?"
    )
    found = connection.execute(
        f"SELECT {ROW} FROM ({best}) JOIN chunks ON chunks.passage = best"
        " JOIN passages ON passages.id = best JOIN files ON files.id = passages.file",
        (any_of(terms), *seen, *values, max(CANDIDATES, 2 * wish.max_results)),
    )
    return [row_of(row) for row in found]


def _filters(wish: Recall) -> tuple[str, list[str | float]]:
    parts: list[str] = ["chunks.confidence >= ?"]
    values: list[str | float] = [wish.min_confidence]
    for column, wanted in (("conversation", wish.conversation_id), ("type", wish.chunk_type)):
        if wanted is not None:
            parts.append(f"chunks.{column} = ?")
            values.append(wanted)
    for tag in dict.fromkeys(tag.casefold() for tag in wish.tags):
        parts.append("chunks.passage IN (SELECT passage FROM tags WHERE tag = ?)")
        values.append(tag)
    return " AND ".join(parts), values
