"""Recall: which chunks may answer a question, from the search engine's words and vectors, and then which do best.

What the words of a question are (their stems, what a misspelt one meant), where they stand, what is alike in meaning
and which time is meant is the search engine's; the order is ``ranking``'s. No model is asked.
"""

import json

import apsw
import msgspec

from trunkline.api.chunks import ChunkVisibility
from trunkline.api.memory import Chunk, Recall, RecalledChunk, RecallResult
from trunkline.api.nlp import language_of, synonyms, tokenize
from trunkline.api.text import to_local_time
from trunkline_git_store.chunks.queries import (
    INDEXED_CHUNK_COLUMNS,
    BlobReader,
    IndexedChunk,
    deduplicate,
    load_chunks,
    note_use,
    to_indexed_chunk,
    visible_condition,
)
from trunkline_git_store.chunks.ranking import SYNONYM, ChunkFeatures, ChunkScore, QueryWord, score_chunks
from trunkline_git_store.index.passage import to_micros
from trunkline_git_store.search.dates import Period, parse_period
from trunkline_git_store.search.filters import MAX_NARROW_PASSAGES
from trunkline_git_store.search.lexical import WEIGHTS
from trunkline_git_store.search.semantic import QueryVector
from trunkline_git_store.search.terms import Term, any_of, parse_terms, query_words
from trunkline_git_store.stemmer import TextStemmer

CANDIDATES = 60
"""Chunks that are weighed, at least: the best by BM25, and the most alike."""

MAX_TRAVERSAL = 20
"""The number of scored chunks that are returned."""


class RecallQuery(msgspec.Struct, frozen=True):
    """An analysed recall query: its words, their synonyms, the time that it names, and its vector, if any."""

    request: Recall
    sight: ChunkVisibility
    terms: list[Term]
    same: list[Term]
    period: Period | None
    meaning: QueryVector | None

    @property
    def words(self) -> list[QueryWord]:
        """The words of the question with their weights."""
        words = [QueryWord(term.stems, alike=term.instead == "spelled") for term in self.terms]
        return words + [QueryWord(term.stems, weight=SYNONYM) for term in self.same]


class RecallFilter:
    """The chunks that an asker may see and that match the query."""

    def __init__(self, sight: ChunkVisibility, request: Recall) -> None:
        where, seen = visible_condition(sight)
        more, values = _filters(request)
        self.condition = f"{where} AND {more}"
        self.values = [*seen, *values]

    @property
    def passages(self) -> str:
        """The SELECT of their passages."""
        joined = "chunks JOIN passages ON passages.id = chunks.passage"
        return f"SELECT passages.id FROM {joined} WHERE {self.condition}"

    def is_narrow(self, connection: apsw.Connection) -> bool:
        """Report whether they are few."""
        count = f"SELECT count(*) FROM ({self.passages} LIMIT {MAX_NARROW_PASSAGES + 1})"
        return int(connection.execute(count, self.values).get) <= MAX_NARROW_PASSAGES


def recall(
    connection: apsw.Connection,
    contents: BlobReader,
    stems: TextStemmer,
    sight: ChunkVisibility,
    request: Recall,
    meaning: QueryVector | None = None,
) -> RecallResult:
    """The chunks that answer best; equal ones by confidence, then the newer first."""
    question = _parse_query(connection, stems, sight, request, meaning)
    rows = list(deduplicate(_candidates(connection, question), sight))
    alike = meaning.similarities(connection, (row.passage for row in rows)) if meaning else {}
    by_path = {row.path: alike.get(row.passage, 0.0) for row in rows}
    found = [(chunk, by_path[chunk.path]) for chunk in load_chunks(connection, contents, rows)]
    candidates = [_candidate(stems, question, chunk, likeness) for chunk, likeness in found]
    weighed = zip(
        score_chunks(stems.stem_text(request.query)[1], question.words, candidates), found, strict=True
    )
    ordered = sorted(((chunk, one, alike) for one, (chunk, alike) in weighed if one.score > 0), key=_order)
    best = ordered[: request.max_results]
    note_use(connection, [chunk.id for chunk, *_ in best], sight.now)
    return RecallResult(
        answer=best[0][0].content if best else "",
        confidence=_confidence(best[0], question) if best else 0.0,
        source_chunks=tuple(chunk.id for chunk, *_ in best),
        traversal_path=tuple(chunk.id for chunk, *_ in ordered[:MAX_TRAVERSAL]),
        chunks=tuple(
            RecalledChunk(chunk=chunk, score=one.score, why=one.why, factors=one.factors)
            for chunk, one, _ in best
        ),
    )


ScoredChunk = tuple[Chunk, ChunkScore, float]
"""A chunk, its score, and how alike it is."""


def _parse_query(
    connection: apsw.Connection,
    stems: TextStemmer,
    sight: ChunkVisibility,
    request: Recall,
    meaning: QueryVector | None,
) -> RecallQuery:
    terms = parse_terms(connection, stems, request.query)
    same = _synonyms(connection, stems, request.query)
    return RecallQuery(
        request, sight, terms, same, parse_period(request.query, to_local_time(sight.now)), meaning
    )


def _candidate(stems: TextStemmer, question: RecallQuery, chunk: Chunk, alike: float) -> ChunkFeatures:
    tags = frozenset(stem for tag in chunk.tags for stem in stems.stem_text(tag)[1].split())
    made, period = to_micros(chunk.metadata.created_at), question.period
    return ChunkFeatures(
        stems.stem_text(chunk.content)[1],
        tags,
        chunk.metadata.confidence,
        age=to_micros(question.sight.now) - made,
        alike=alike,
        timely=period is not None and to_micros(period.start) <= made < to_micros(period.end),
    )


def _order(candidate: ScoredChunk) -> tuple[float, float, int, str]:
    chunk, weighed, _ = candidate
    return -weighed.score, -chunk.metadata.confidence, -to_micros(chunk.metadata.created_at), chunk.id


def _confidence(candidate: ScoredChunk, question: RecallQuery) -> float:
    """Return the confidence in the best chunk: its own, reduced by how well it covers the question or
    resembles it. Words that memory does not have at all count as not covered."""
    chunk, weighed, alike = candidate
    known = len(question.terms) / max(1, len(query_words(question.request.query)))
    return round(chunk.metadata.confidence * min(1.0, max(weighed.cover * known, alike)), 4)


def _synonyms(connection: apsw.Connection, stems: TextStemmer, query: str) -> list[Term]:
    """Terms that mean the same as words of the question; only such as memory has."""
    language, have = language_of(tokenize(query)), set(query_words(query))
    words = " ".join(sorted({other for word in have for other in synonyms(word, language)} - have))
    return [term for term in parse_terms(connection, stems, words) if not term.instead] if words else []


def _candidates(connection: apsw.Connection, question: RecallQuery) -> list[IndexedChunk]:
    """The chunks that have some of the words, the best first, then those that mean something alike."""
    if not question.sight.folders or not question.request.max_results:
        return []
    able = RecallFilter(question.sight, question.request)
    found = _matching_chunks(connection, question, able)
    if question.meaning is None:
        return found
    near = question.meaning.nearest(connection, able, CANDIDATES) - {row.passage for row in found}
    return found + _rows(connection, "SELECT value AS best FROM json_each(?)", (json.dumps(sorted(near)),))


def _matching_chunks(
    connection: apsw.Connection, question: RecallQuery, able: RecallFilter
) -> list[IndexedChunk]:
    """The chunks that have some of the words, the best first."""
    terms = [*question.terms, *question.same]
    best = (
        "SELECT words.rowid AS best FROM words CROSS JOIN chunks ON chunks.passage = words.rowid"
        f" WHERE words MATCH ? AND {able.condition} ORDER BY bm25(words, {WEIGHTS}) LIMIT ?"
    )
    most = max(CANDIDATES, 2 * question.request.max_results)
    return _rows(connection, best, (any_of(terms), *able.values, most)) if terms else []


def _rows(connection: apsw.Connection, best: str, values: tuple[str | float, ...]) -> list[IndexedChunk]:
    """The rows of the passages that a SELECT gives as ``best``."""
    found = connection.execute(
        f"SELECT {INDEXED_CHUNK_COLUMNS} FROM ({best}) JOIN chunks ON chunks.passage = best"
        " JOIN passages ON passages.id = best JOIN files ON files.id = passages.file",
        values,
    )
    return [to_indexed_chunk(row) for row in found]


def _filters(request: Recall) -> tuple[str, list[str | float]]:
    parts: list[str] = ["chunks.confidence >= ?"]
    values: list[str | float] = [request.min_confidence]
    for column, wanted in (("conversation", request.conversation_id), ("type", request.chunk_type)):
        if wanted is not None:
            parts.append(f"chunks.{column} = ?")
            values.append(wanted)
    for tag in dict.fromkeys(tag.casefold() for tag in request.tags):
        parts.append("chunks.passage IN (SELECT passage FROM tags WHERE tag = ?)")
        values.append(tag)
    return " AND ".join(parts), values
