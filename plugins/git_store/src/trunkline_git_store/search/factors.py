"""Factors that raise or lower the score of a passage, whatever found it. Each rule is a few lines; the
numbers are in one place, and every hit lists the factors that applied."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

import apsw

from trunkline.api.nlp import tokenize
from trunkline_git_store.index.passage import to_micros
from trunkline_git_store.search.candidates import PassageCandidate
from trunkline_git_store.search.dates import Period
from trunkline_git_store.search.terms import Term
from trunkline_git_store.stemmer import TextStemmer

TALK = 0.7
"""A conversation repeats what was searched for, in the question and in tool results, so a document that says it as
well comes first."""

TAGGED = 1.5
"""Someone said what a passage is about: more than that it has the word."""

SPOKEN, ASKED = 1.2, 0.9
IN_PERIOD = 1.6
NEW, OLD, FADES_DAYS = 1.03, 0.97, 60.0
"""The factors for new and old passages, and the number of days from one to the other."""

UNSURE = 0.8
"""A confidence of 0; one of 1 counts in full."""

_DAY = 86_400 * 1_000_000


def recency(candidates: Mapping[int, PassageCandidate], now: datetime) -> None:
    """Raise recent passages slightly."""
    for one in candidates.values():
        if one.at:
            days = max(0, (to_micros(now) - one.at) // _DAY)
            one.multiply("recency", OLD + (NEW - OLD) * math.exp(-days / FADES_DAYS), _ago(days))


def _ago(days: int) -> str:
    return f"{days} days ago" if days > 1 else ("today", "yesterday")[days]


def confidence(candidates: Mapping[int, PassageCandidate]) -> None:
    """Lower passages with less confidence."""
    for one in candidates.values():
        if one.confidence is not None:
            one.multiply("confidence", UNSURE + (1 - UNSURE) * min(1.0, max(0.0, one.confidence)))


def speaker(candidates: Mapping[int, PassageCandidate], text: str) -> None:
    """Raise passages whose speaker the question names."""
    words = set(tokenize(text))
    for one in candidates.values():
        named = tokenize(one.speaker_name)
        if named and words.issuperset(named):
            one.multiply("speaker", SPOKEN, one.speaker)


def period(candidates: Mapping[int, PassageCandidate], period: Period | None) -> None:
    """Raise passages of the period that the question names."""
    if period is None:
        return
    start, end = to_micros(period.start), to_micros(period.end)
    for one in candidates.values():
        if start <= one.at < end:
            one.multiply("date", IN_PERIOD, period.phrase)


def questions(candidates: Mapping[int, PassageCandidate]) -> None:
    """Lower passages that are questions."""
    for one in candidates.values():
        if one.asks:
            one.multiply("question", ASKED)


def talk(candidates: Mapping[int, PassageCandidate]) -> None:
    """Talk about something counts less than what was written about it."""
    for one in candidates.values():
        if one.kind == "turn":
            one.multiply("talk", TALK)


def tags(
    connection: apsw.Connection,
    candidates: Mapping[int, PassageCandidate],
    terms: Sequence[Term],
    stems: TextStemmer,
) -> None:
    """The words of the question among the tags."""
    looked_for = {stem for term in terms for stem in term.stems}
    for one in candidates.values() if terms else ():
        rows = connection.execute("SELECT tag FROM tags WHERE passage = ?", (one.id,))
        held = [tag for (tag,) in rows if looked_for.intersection(stems.stem_text(tag)[1].split())]
        if held:
            one.multiply("tags", TAGGED, ", ".join(sorted(held)))
