"""Recall: which chunks may answer a question, from the index, and then which do best. No model is asked."""

from datetime import datetime

import apsw

from trunkline.memory.chunks.finding import (
    ROW,
    Contents,
    Row,
    Sight,
    first_of_each,
    note_use,
    row_of,
    rows,
    shown,
)
from trunkline.memory.chunks.ranking import Candidate, Weighed, asked, synonyms, weigh
from trunkline.memory.index.passage import micros
from trunkline.memory.search.terms import any_of, terms_of
from trunkline.memory.words.stems import Stems
from trunkline.messages.chunks import Chunk, Recall, Recalled, RecalledChunk

CANDIDATES = 200
VISITED = 20
"""How many of those that were weighed are told."""


def recall(
    connection: apsw.Connection, contents: Contents, sight: Sight, wish: Recall, now: datetime
) -> Recalled:
    """The chunks that answer best; equal ones by confidence, then the newer first."""
    found = list(shown(connection, contents, first_of_each(_candidates(connection, sight, wish), sight)))
    weighed = weigh(wish.query, [_candidate(chunk, now) for chunk in found])
    ordered = sorted((pair for pair in zip(found, weighed, strict=True) if pair[1].score > 0), key=_order)
    best = ordered[: wish.max_results]
    note_use(connection, [chunk.id for chunk, _ in best], now)
    return Recalled(
        answer=best[0][0].content if best else "",
        confidence=_sureness(best[0]) if best else 0.0,
        source_chunks=tuple(chunk.id for chunk, _ in best),
        traversal_path=tuple(chunk.id for chunk, _ in ordered[:VISITED]),
        chunks=tuple(RecalledChunk(chunk=chunk, score=one.score, why=one.why) for chunk, one in best),
    )


def _candidate(chunk: Chunk, now: datetime) -> Candidate:
    age = micros(now) - micros(chunk.metadata.created_at)
    return Candidate(chunk.content, chunk.tags, chunk.metadata.confidence, age)


def _order(pair: tuple[Chunk, Weighed]) -> tuple[float, float, int, str]:
    chunk, weighed = pair
    return -weighed.score, -chunk.metadata.confidence, -micros(chunk.metadata.created_at), chunk.id


def _sureness(pair: tuple[Chunk, Weighed]) -> float:
    """How far to trust the best chunk: its own confidence, as far as it covers the question."""
    chunk, weighed = pair
    return round(chunk.metadata.confidence * weighed.cover, 4)


def _candidates(connection: apsw.Connection, sight: Sight, wish: Recall) -> list[Row]:
    more, values = _filters(wish)
    wanted = asked(wish.query)
    spelt = [*wanted, *(other for word in wanted for other in synonyms(word))]
    if not spelt or not wish.max_results:
        return []
    terms = terms_of(connection, Stems(), " ".join(spelt))
    said = _said(connection, sight, f"{{text tags}} : ({any_of(terms)})", more, values) if terms else []
    marks = ", ".join("?" for _ in spelt)
    tagged = rows(
        connection,
        sight,
        f"{more} AND chunks.passage IN (SELECT passage FROM tags WHERE tag IN ({marks}))"
        " ORDER BY chunks.at DESC LIMIT ?",
        (*values, *spelt, CANDIDATES),
    )
    return list({row.passage: row for row in (*tagged, *said)}.values())


def _said(
    connection: apsw.Connection, sight: Sight, match: str, more: str, values: list[str | float]
) -> list[Row]:
    """The chunks that say some of the words, the best first."""
    where, seen = sight.condition()
    found = connection.execute(
        f"SELECT {ROW} FROM words JOIN chunks ON chunks.passage = words.rowid"
        " JOIN passages ON passages.id = chunks.passage JOIN files ON files.id = passages.file"
        f" WHERE words MATCH ? AND {where} AND {more} ORDER BY bm25(words) LIMIT ?",
        (match, *seen, *values, CANDIDATES),
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
