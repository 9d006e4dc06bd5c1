"""Passages by the words in them."""

import apsw

from trunkline.memory.conversations import names_of
from trunkline.memory.repository import Repository
from trunkline.memory.search.literal import search_literally
from trunkline.memory.search.shown import hit_at, lines_of, matching
from trunkline.memory.search.words import match, words_of
from trunkline.messages.memory import MemoryHit, SearchMemory

_TALK = "CASE WHEN files.path GLOB 'blocks/*/conversations/*' THEN 0.5 ELSE 1.0 END"
"""A conversation repeats what was searched for, in the question and in tool results, so a document that says it as
well comes first."""


def search_content(
    connection: apsw.Connection, repository: Repository, query: SearchMemory
) -> tuple[MemoryHit, ...]:
    """The best passages: first one of each file, then further ones. Literal text when no words match."""
    words = words_of(query.query)
    rows = _matches(connection, words, query) if words else []
    chosen = _spread(rows, query.limit)
    hits = tuple(_hit(repository, row, words) for row in chosen)
    return hits or search_literally(repository, query)


_Row = tuple[str, str, int, float]
"""Path, blob, line of the passage, score."""


def _matches(connection: apsw.Connection, words: list[str], query: SearchMemory) -> list[_Row]:
    best = "SELECT rowid AS id, -bm25(words) AS score FROM words WHERE words MATCH ?"
    values: list[str | int] = [match(words, " OR ")]
    if query.path:
        best += (
            " AND rowid IN (SELECT passages.id FROM passages JOIN files ON files.id = passages.file"
            " WHERE files.path = ? OR (files.path > ? AND files.path < ?))"
        )
        values += [query.path, query.path + "/", query.path + "0"]
    rows = connection.execute(
        f"WITH best AS ({best} ORDER BY score DESC LIMIT ?) "
        f"SELECT files.path, files.blob, passages.line, best.score * {_TALK} AS weighed FROM best "
        "JOIN passages ON passages.id = best.id JOIN files ON files.id = passages.file "
        "ORDER BY weighed DESC, files.path, passages.line",
        (*values, query.limit * 8),
    )
    return list(rows)


def _spread(rows: list[_Row], limit: int) -> list[_Row]:
    seen: set[str] = set()
    firsts: list[_Row] = []
    others: list[_Row] = []
    for row in rows:
        (others if row[0] in seen else firsts).append(row)
        seen.add(row[0])
    return (firsts + others)[:limit]


def _hit(repository: Repository, row: _Row, words: list[str]) -> MemoryHit:
    path, blob, line, score = row
    data = repository.data(repository.object_id(blob))
    offset, lines = lines_of(path, data, line)
    best = max(range(len(lines)), key=lambda at: (matching(lines[at], words), -at), default=0)
    shown = 0 if names_of(path) is not None else best
    return hit_at(path, offset + shown, lines, best, score)
