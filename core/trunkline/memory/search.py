"""Questions to the index: where words are found, and which conversations there are. Changes nothing."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import apsw

from trunkline.memory.conversations import names_of, parse
from trunkline.memory.index import micros
from trunkline.memory.passages import LARGEST, as_text
from trunkline.memory.paths import under
from trunkline.memory.repository import Repository, files_in, folder_at
from trunkline.messages.conversation import ConversationPage, ConversationSummary, ListConversations
from trunkline.messages.memory import MemoryHit, SearchMemory

CONTEXT_LINES = 2
LINE_LETTERS = 500
_WORD = re.compile(r"\w+")
_TALK = "CASE WHEN files.path GLOB 'blocks/*/conversations/*' THEN 0.5 ELSE 1.0 END"
"""A conversation repeats what was searched for, in the question and in tool results, so a document that says it as
well comes first."""

_EPOCH = datetime.fromtimestamp(0, UTC)


def search_content(
    connection: apsw.Connection, repository: Repository, query: SearchMemory
) -> tuple[MemoryHit, ...]:
    """The best passages: first one of each file, then further ones. Literal text when no words match."""
    words = words_of(query.query)
    rows = _matches(connection, words, query) if words else []
    chosen = _spread(rows, query.limit)
    hits = tuple(_hit(repository, row, words) for row in chosen)
    return hits or _literal(repository, query)


def search_names(paths: Iterable[str], query: SearchMemory) -> tuple[MemoryHit, ...]:
    """The files whose path holds every word of the query; those with it in the name come first."""
    wanted = query.query.casefold().split()
    hits: list[MemoryHit] = []
    for path in paths:
        folded, name = path.casefold(), path.rpartition("/")[2].casefold()
        if wanted and under(path, query.path) and all(word in folded for word in wanted):
            score = sum((word in name) + name.startswith(word) for word in wanted) / len(wanted)
            hits.append(MemoryHit(path=path, line=1, content=path, context="", score=score))
    hits.sort(key=lambda hit: (-hit.score, hit.path))
    return tuple(hits[: query.limit])


def list_conversations(connection: apsw.Connection, query: ListConversations) -> ConversationPage:
    """A page of those that match, newest first, and how many match in all."""
    where, values = _conditions(query)
    total = connection.execute(f"SELECT count(*) FROM conversations WHERE {where}", values).get
    rows = connection.execute(
        f"SELECT id, block, title, created, updated, count FROM conversations WHERE {where} "
        "ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?",
        (*values, query.limit, query.offset),
    )
    found = tuple(_summary(row) for row in rows)
    return ConversationPage(conversations=found, total=total, limit=query.limit, offset=query.offset)


def find_conversation(connection: apsw.Connection, conversation: str) -> ConversationSummary | None:
    """The line of one conversation."""
    row = connection.execute(
        "SELECT id, block, title, created, updated, count FROM conversations WHERE id = ? ORDER BY updated DESC",
        (conversation,),
    ).fetchone()
    return None if row is None else _summary(row)


# Words -------------------------------------------------------------------------------------------------------

_Row = tuple[str, str, int, float]
"""Path, blob, line of the passage, score."""


def words_of(text: str) -> list[str]:
    """The words of a query, folded, each once."""
    return list(dict.fromkeys(word.casefold() for word in _WORD.findall(text)))[:64]


def _match(words: list[str], joint: str) -> str:
    return joint.join(f'"{word}"*' if len(word) > 2 else f'"{word}"' for word in words)


def _matches(connection: apsw.Connection, words: list[str], query: SearchMemory) -> list[_Row]:
    best = "SELECT rowid AS id, -bm25(words) AS score FROM words WHERE words MATCH ?"
    values: list[str | int] = [_match(words, " OR ")]
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
    offset, lines = _lines(path, data, line)
    best = max(range(len(lines)), key=lambda at: (matching(lines[at], words), -at), default=0)
    shown = 0 if names_of(path) is not None else best
    return hit_at(path, offset + shown, lines, best, score)


def _lines(path: str, data: bytes, line: int) -> tuple[int, list[str]]:
    """The number of the first line, and the lines of a passage that begins there."""
    if names_of(path) is None:
        return line, (as_text(data[:LARGEST]) or "").split("\n")[line - 1 : line + 80]
    rows = data.split(b"\n")
    message = parse("", b"\n" + rows[line - 1]).messages
    return line, message[0].content.split("\n") if message else [""]


def hit_at(path: str, line: int, lines: list[str], best: int, score: float) -> MemoryHit:
    """The hit in the ``best`` of some lines, whose number is ``line``, with what stands around it."""
    around = lines[max(0, best - CONTEXT_LINES) : best + CONTEXT_LINES + 1]
    context = "\n".join(_cut(text) for text in around)
    content = _cut(lines[best]) if lines else ""
    return MemoryHit(path=path, line=line, content=content, context=context, score=round(score, 6))


def matching(line: str, words: list[str]) -> int:
    """How many of the words are in a line."""
    folded = line.casefold()
    return sum(word in folded for word in words)


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LETTERS else line[:LINE_LETTERS] + "…"


def _literal(repository: Repository, query: SearchMemory) -> tuple[MemoryHit, ...]:
    """What no word index can find (signs, parts of words, scripts without spaces): the text as it stands."""
    wanted = query.query.strip().casefold()
    hits: list[MemoryHit] = []
    for path, lines in _texts(repository, query.path) if wanted else ():
        for number, line in enumerate(lines, start=1):
            if wanted in line.casefold():
                hits.append(hit_at(path, number, lines, number - 1, 0.0))
                break
        if len(hits) >= query.limit:
            break
    return tuple(hits)


def _texts(repository: Repository, prefix: str) -> Iterator[tuple[str, list[str]]]:
    tree = repository.tree(repository.head())
    for path, entry in files_in(folder_at(tree, prefix), prefix):
        text = as_text(repository.data(entry.blob)[:LARGEST])
        if text is not None:
            yield path, text.split("\n")


# Conversations -----------------------------------------------------------------------------------------------


def _conditions(query: ListConversations) -> tuple[str, tuple[str | int, ...]]:
    parts: list[str] = ["1"]
    values: list[str | int] = []
    if query.block is not None:
        parts.append("block = ?")
        values.append(query.block)
    if query.start is not None:
        parts.append("updated >= ?")
        values.append(micros(query.start))
    if query.end is not None:
        parts.append("updated <= ?")
        values.append(micros(query.end))
    if query.search and query.search.strip():
        parts.append(_said(query.search, values))
    return " AND ".join(parts), tuple(values)


def _said(search: str, values: list[str | int]) -> str:
    """The words in the title, or in what was said."""
    title = "instr(lower(coalesce(title, '')), lower(?)) > 0"
    values.append(search.strip())
    words = words_of(search)
    if not words:
        return title
    values.append(_match(words, " AND "))
    said = "SELECT passages.file FROM words JOIN passages ON passages.id = words.rowid WHERE words MATCH ?"
    return f"({title} OR file IN ({said}))"


def _summary(row: tuple[str, str, str | None, int, int, int]) -> ConversationSummary:
    identity, block, title, created, updated, count = row
    return ConversationSummary(
        id=identity,
        block=block,
        title=title,
        created_at=_EPOCH + timedelta(microseconds=created),
        updated_at=_EPOCH + timedelta(microseconds=updated),
        message_count=count,
    )
