"""Two facts that cannot both hold: one denies the other, or the same thing is given another value. Pure.

The heuristics are ``negation_conflict``, ``potential_preference_conflict`` and a changed value. What is found is linked
and shown; nothing is overwritten, since words alone may be wrong and people change.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from trunkline.api.nlp import common_language, concepts, is_negated, sentiment, similarity, topic_text
from trunkline_learning.facts import Fact
from trunkline_learning.text import split_words

Kind = Literal["negation", "preference", "value"]

SAME = 0.95
"""From here on two texts say the same."""

ABOUT_THE_SAME = 0.8
"""The similarity, without their negations, from which two statements are about the same thing."""

_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("name", re.compile(r"\b(?:my name is|call me) (?P<value>.+)")),
    (
        "lives in",
        re.compile(r"\b(?P<who>\w+)(?:'s| am|'m| is)? (?:live|lives|living|based|located) in (?P<value>.+)"),
    ),
    (
        "works at",
        re.compile(r"\b(?P<who>\w+)(?:'s| am|'m| is)? (?:work|works|working) (?:at|for) (?P<value>.+)"),
    ),
    ("works as", re.compile(r"\b(?P<who>\w+)(?:'s| am|'m| is)? (?:work|works|working) as (?P<value>.+)")),
    ("born in", re.compile(r"\b(?P<who>\w+) (?:was|were) born (?:in|on) (?P<value>.+)")),
    ("is", re.compile(r"\b(?:my|our) (?P<who>[\w' -]{2,40}?) (?:is|are|was) (?:now )?(?P<value>.+)")),
    ("has", re.compile(r"\b(?P<who>i|we) have (?P<value>\d+|a|an|two|three|four|five) ")),
)
_HERE = re.compile(r"\b(now|currently|today|these days|since .*|since|for now)\b")


def is_same_statement(one: str, other: str) -> bool:
    """Report whether they say the same in nearly the same words."""
    language = common_language(one, other)
    alike = is_negated(one, language) == is_negated(other, language) and similarity(one, other) >= SAME
    return alike and not _changed(one, other)


def conflict_kind(one: str, other: str) -> Kind | None:
    """Return the kind of contradiction between two statements; None when they do not contradict each other."""
    if _changed(one, other):
        return "value"
    language = common_language(one, other)
    about = topic_text(one, language)
    if not about or similarity(about, topic_text(other, language)) < ABOUT_THE_SAME:
        return None
    ours, theirs = sentiment(one, language), sentiment(other, language)
    if ours and theirs:
        return "preference" if ours != theirs else None
    return "negation" if is_negated(one, language) != is_negated(other, language) else None


def contradicted_facts(fact: Fact, known: Iterable[Fact]) -> tuple[tuple[Fact, Kind], ...]:
    """The known facts that the new one contradicts."""
    pairs: Iterator[tuple[Fact, Kind | None]] = (
        (other, conflict_kind(fact.text, other.text)) for other in known
    )
    return tuple((other, kind) for other, kind in pairs if kind is not None)


def _changed(one: str, other: str) -> bool:
    """Report whether both give the same thing a value, and not the same one."""
    first, second = _slot(one), _slot(other)
    if first is None or second is None or first[0] != second[0]:
        return False
    return first[1] != second[1] and not is_negated(one) and not is_negated(other)


def _slot(text: str) -> tuple[str, tuple[str, ...]] | None:
    said = " ".join(text.casefold().replace("’", "'").strip(" .!").split())
    for name, pattern in _SLOTS:
        if found := pattern.search(said):
            who = found.groupdict().get("who") or ""
            about = "" if who in ("i", "we") else " ".join(concepts(who))
            value = tuple(concepts(_HERE.sub(" ", re.split(r"[,;]| and | but ", found["value"])[0])))
            return f"{name}:{about}", value or tuple(split_words(found["value"]))
    return None
