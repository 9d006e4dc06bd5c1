"""The list of conversations, as the index has it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import apsw

from trunkline.api.gateway import ConversationSummary, ListConversations
from trunkline.api.memory import ConversationPage
from trunkline.api.store import ForkedFrom
from trunkline_git_store.index.passage import to_micros
from trunkline_git_store.search.terms import all_of, parse_terms, query_words
from trunkline_git_store.stemmer import TextStemmer

_EPOCH = datetime.fromtimestamp(0, UTC)

_COLUMNS = (
    "id, block, title, created, updated, count, one_shot, pinned, archived, origin, origin_turn, origin_step"
)


def list_conversations(
    connection: apsw.Connection, stems: TextStemmer, query: ListConversations
) -> ConversationPage:
    """A page of those that match, newest first, and how many match in all."""
    where, values = _conditions(connection, stems, query)
    total = connection.execute(f"SELECT count(*) FROM conversations WHERE {where}", values).get
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM conversations WHERE {where} ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?",
        (*values, query.limit, query.offset),
    )
    found = tuple(_summary(row) for row in rows)
    return ConversationPage(conversations=found, total=total, limit=query.limit, offset=query.offset)


def find_conversation(connection: apsw.Connection, conversation: str) -> ConversationSummary | None:
    """The line of one conversation."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM conversations WHERE id = ? ORDER BY updated DESC",
        (conversation,),
    ).fetchone()
    return None if row is None else _summary(row)


def _conditions(
    connection: apsw.Connection, stems: TextStemmer, query: ListConversations
) -> tuple[str, tuple[str | int, ...]]:
    parts: list[str] = ["1" if query.one_shot else "NOT one_shot"]
    values: list[str | int] = []
    if query.block is not None:
        parts.append("block = ?")
        values.append(query.block)
    if query.start is not None:
        parts.append("updated >= ?")
        values.append(to_micros(query.start))
    if query.end is not None:
        parts.append("updated <= ?")
        values.append(to_micros(query.end))
    if query.pinned is not None:
        parts.append("pinned = ?")
        values.append(query.pinned)
    if query.wanted_archived is not None:
        parts.append("archived = ?")
        values.append(query.wanted_archived)
    if query.forked_from is not None:
        parts.append("origin = ?")
        values.append(query.forked_from)
    if query.search and query.search.strip():
        parts.append(_said(connection, stems, query.search, values))
    return " AND ".join(parts), tuple(values)


def _said(connection: apsw.Connection, stems: TextStemmer, search: str, values: list[str | int]) -> str:
    """The words in the title, or in what was said."""
    title = "instr(lower(coalesce(title, '')), lower(?)) > 0"
    values.append(search.strip())
    terms = parse_terms(connection, stems, search)
    if not terms or len(terms) < len(query_words(search)):
        return title
    values.append(f"text : ({all_of(terms)})")
    said = "SELECT passages.file FROM words JOIN passages ON passages.id = words.rowid WHERE words MATCH ?"
    return f"({title} OR file IN ({said}))"


def _summary(row: tuple[Any, ...]) -> ConversationSummary:
    """Return the entry of a row with ``_COLUMNS``."""
    identity, block, title, created, updated, count, one_shot, pinned, archived, origin, turn, step = row
    return ConversationSummary(
        id=identity,
        block=block,
        title=title,
        created_at=_EPOCH + timedelta(microseconds=created),
        updated_at=_EPOCH + timedelta(microseconds=updated),
        message_count=count,
        forked_from=None if origin is None else ForkedFrom(conversation=origin, turn=turn, step=step),
        one_shot=bool(one_shot),
        pinned=bool(pinned),
        archived=bool(archived),
    )
