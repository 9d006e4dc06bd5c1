"""Passages by all that speaks for them: the signals are gathered, fused and explained.

``lexical`` and ``meaning`` find and score; ``factors`` weigh; ``links`` bring what is linked. A score is the sum of
what was found times the factors, and each hit carries all of them (``why``).
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

import apsw
import msgspec

from trunkline import MemoryHit
from trunkline.api.memory import SearchMemory
from trunkline.api.text import to_local_time
from trunkline_git_store.index.search_index import SearchIndex
from trunkline_git_store.search import factors
from trunkline_git_store.search.candidates import PassageCandidate, load_candidates
from trunkline_git_store.search.dates import Period, parse_period
from trunkline_git_store.search.filters import SearchFilter
from trunkline_git_store.search.lexical import Scores, lexical_scores, rarities
from trunkline_git_store.search.literal import search_literally
from trunkline_git_store.search.passage_texts import PassageTextReader
from trunkline_git_store.search.semantic import SEMANTIC_WEIGHT, QueryVector
from trunkline_git_store.search.snippets import build_hit, stem_prefix
from trunkline_git_store.search.terms import Term, has_term, parse_terms

MIN_CANDIDATES = 60
"""Passages that are weighed, at least."""

NEAR_WORDS = 2
"""Words that must stand around a turn which has none of its own."""

ACTIVE_CONVERSATION = timedelta(days=1)
"""The time after its end within which a conversation's "yesterday" is counted from now."""


MAX_FOLLOWED = 5
"""The number of best hits whose links are followed."""

LINKED_SHARE = 0.4
"""The share of a hit's score that a linked passage gets at full strength."""


class ParsedQuery(msgspec.Struct, frozen=True):
    """A search, understood."""

    query: SearchMemory
    terms: Sequence[Term]
    filters: SearchFilter
    period: Period | None
    now: datetime
    meaning: QueryVector | None

    def is_semantic_match(self, one: PassageCandidate) -> bool:
        """Report whether a passage is meant, whatever its words."""
        return self.meaning is not None and one.weight("meaning") >= SEMANTIC_WEIGHT * self.meaning.least

    @property
    def pool(self) -> int:
        """The number of passages that are scored."""
        return max(MIN_CANDIDATES, 4 * self.query.limit)


def search_content(
    connection: apsw.Connection, index: SearchIndex, query: SearchMemory, meaning: QueryVector | None = None
) -> tuple[MemoryHit, ...]:
    """The best passages. Literal text when no words match."""
    question = parse_query(connection, index, query, meaning)
    found = _find_candidates(connection, index, question)
    if not found:
        return (
            search_literally(index.repository, query) if not question.filters.restricts_more_than_path else ()
        )
    ordered = sorted(found.values(), key=lambda one: one.sort_key)
    return tuple(islice(_hits(connection, index, question, ordered), query.limit))


def parse_query(
    connection: apsw.Connection, index: SearchIndex, query: SearchMemory, meaning: QueryVector | None
) -> ParsedQuery:
    """The words of a search as the index knows them, and the time it speaks of."""
    now = query.asked_at or _conversation_end(connection, query.conversation)
    return ParsedQuery(
        query,
        parse_terms(connection, index.stems, query.query),
        SearchFilter(query),
        parse_period(query.query, now),
        now,
        meaning,
    )


def _conversation_end(connection: apsw.Connection, conversation: str) -> datetime:
    """Return the time when a conversation ended if that is long ago; otherwise the present time."""
    now = to_local_time(datetime.now(UTC))
    updated = connection.execute("SELECT max(updated) FROM conversations WHERE id = ?", (conversation,)).get
    ended = datetime.fromtimestamp(updated / 1_000_000, UTC) if updated else now
    return ended if now - ended > ACTIVE_CONVERSATION else now


def _find_candidates(
    connection: apsw.Connection, index: SearchIndex, question: ParsedQuery
) -> dict[int, PassageCandidate]:
    scores = lexical_scores(connection, question.terms, question.filters, question.pool)
    near = (
        question.meaning.nearest(connection, question.filters, question.pool) if question.meaning else set()
    )
    found = load_candidates(connection, scores.keys() | near)
    _count_words(connection, question, found, scores)
    _count_meaning(connection, question, found)
    if not found and question.period is not None:
        found = _load_from_period(connection, question, question.period)
    _weigh(connection, index, question, found)
    best = sorted(found.values(), key=lambda one: one.sort_key)
    _follow_links(connection, question, found, best)
    return found


def _count_words(
    connection: apsw.Connection,
    question: ParsedQuery,
    candidates: dict[int, PassageCandidate],
    scores: Scores,
) -> None:
    """BM25F, as a share of what the words of the question weigh together: so it means the same in every search."""
    most = sum(rarities(connection, question.terms))
    for row in scores.keys() & candidates.keys():
        candidates[row].add("words", scores[row] / most)


def _count_meaning(
    connection: apsw.Connection, question: ParsedQuery, candidates: dict[int, PassageCandidate]
) -> None:
    """Add the similarity in meaning: a cosine, of about the size of the word scores of a good hit."""
    if question.meaning is not None:
        for row, alike in question.meaning.similarities(connection, candidates).items():
            candidates[row].add("meaning", SEMANTIC_WEIGHT * max(0.0, alike))


def _load_from_period(
    connection: apsw.Connection, question: ParsedQuery, period: Period
) -> dict[int, PassageCandidate]:
    """Return the passages of a period, the newest first, when nothing else is asked for."""
    query = msgspec.structs.replace(question.query, since=period.start, until=period.end)
    wanted = SearchFilter(query)
    rows = connection.execute(
        f"{wanted.passages} ORDER BY passages.at DESC LIMIT ?", (*wanted.values, question.pool)
    )
    found = load_candidates(connection, (row for (row,) in rows))
    for one in found.values():
        one.add("time", 0.1, period.phrase)
    return found


def _weigh(
    connection: apsw.Connection,
    index: SearchIndex,
    question: ParsedQuery,
    candidates: dict[int, PassageCandidate],
) -> None:
    factors.tags(connection, candidates, question.terms, index.stems)
    factors.speaker(candidates, question.query.query)
    factors.questions(candidates)
    factors.period(candidates, question.period)
    factors.recency(candidates, question.now)
    factors.confidence(candidates)
    if not question.query.conversation and not question.query.kinds:
        factors.talk(candidates)


def _follow_links(
    connection: apsw.Connection,
    question: ParsedQuery,
    candidates: dict[int, PassageCandidate],
    best: Sequence[PassageCandidate],
) -> None:
    brought = linked_passages(connection, best)
    allowed = question.filters.select_allowed(connection, brought)
    for one in load_candidates(connection, allowed - candidates.keys()).values():
        candidates[one.id] = one
    for passage in allowed & candidates.keys():
        candidates[passage].add("link", *brought[passage])


def _hits(
    connection: apsw.Connection,
    index: SearchIndex,
    question: ParsedQuery,
    ordered: Sequence[PassageCandidate],
) -> Iterator[MemoryHit]:
    """The hits, each with the words that were found in it. What has none of them itself must have several around it:
    one word next door is next door's. A message that forks of its conversation repeat is one hit."""
    texts = PassageTextReader(index.repository)
    shown: set[tuple[str, str]] = set()
    beginnings = [stem_prefix(stem) for term in question.terms for stem in term.stems]
    for one in ordered:
        lines = texts.lines(one)
        message = one.name, "\n".join(lines)
        if one.kind == "turn" and message in shown:
            continue
        own = set(index.stems.stem_text("\n".join((one.speaker_name, *lines)))[1].split())
        held = [term for term in question.terms if own.intersection(term.stems)]
        if held or one.kind != "turn":
            one.explain("words", "words", ", ".join(map(str, held)))
        elif one.has_signal("words"):
            near = [term for term in question.terms if has_term(connection, term, one.id)]
            if len(near) < NEAR_WORDS and not question.is_semantic_match(one) and not one.has_signal("link"):
                continue
            one.explain("words", "neighbours", ", ".join(map(str, near)))
        shown.add(message)
        yield build_hit(one, lines, beginnings)


LinkedPassages = dict[int, tuple[float, str]]
"""A passage, the score that links give it, and which link."""


def linked_passages(connection: apsw.Connection, best: Sequence[PassageCandidate]) -> LinkedPassages:
    """Return the passages that are linked with the best chunks, in either direction: they may be meant as well."""
    found: LinkedPassages = {}
    for one in best[:MAX_FOLLOWED]:
        for passage, kind, strength in _around(connection, one) if one.name else ():
            score = LINKED_SHARE * one.score * min(1.0, max(0.0, strength))
            if passage != one.id and score > found.get(passage, (0.0, ""))[0]:
                found[passage] = score, f"{kind} {one.name}"
    return found


def _around(connection: apsw.Connection, one: PassageCandidate) -> list[tuple[int, str, float]]:
    outgoing = (
        "SELECT passages.id, links.type, links.strength FROM links "
        "JOIN passages ON passages.name = links.target AND passages.name != '' WHERE links.passage = ?"
    )
    incoming = "SELECT passage, type, strength FROM links WHERE target = ?"
    return [
        *connection.execute(f"{outgoing} LIMIT 20", (one.id,)),
        *connection.execute(f"{incoming} LIMIT 20", (one.name,)),
    ]
