"""The polarity of a text: whether it affirms or denies, and likes or dislikes something, by a list of words per
language.

A language without a list has no negations and no likes, so texts in it are never found to disagree.
"""

import re
from collections.abc import Mapping
from typing import Literal

from trunkline._util.nlp.languages import language_of
from trunkline._util.nlp.tokenizer import tokenize

WordLists = Mapping[str, frozenset[str]]


def _by_language(**words: str) -> WordLists:
    return {language: frozenset(listed.split()) for language, listed in words.items()}


NEGATIONS = _by_language(
    english="not no never none neither nor cannot without",
    german="nicht kein keine keinen keinem keiner keines nie niemals nichts weder ohne",
    french="pas jamais aucun aucune rien sans ni",
    spanish="no nunca jamás ningún ninguno ninguna sin ni",
)
"""Words that negate a statement; two of them cancel each other."""

LIKING = _by_language(
    english="like likes liked love loves loved prefer prefers preferred want wants wanted enjoy enjoys enjoyed favour "
    "favours favor favors favorite favourite wish wishes",
    german="mag mögen magst mochte liebe liebt lieben bevorzuge bevorzugt bevorzugen gern gerne genießt lieblings",
    french="aime aimes aimer préfère préfèrent préférer adore adorer",
    spanish="gusta gustan prefiero prefiere preferir encanta encantan amo ama",
)
DISLIKING = _by_language(
    english="dislike dislikes disliked hate hates hated loathe loathes avoid avoids avoided mind minds",
    german="hasse hasst hassen verabscheue verabscheut meide meidet ungern",
    french="déteste détestes détester hais évite éviter",
    spanish="odio odia odiar detesto detesta evito evita",
)
FILLERS = _by_language(
    english="now really very quite still also always usually actually please let longer",
    german="wirklich sehr noch auch immer meistens eigentlich jetzt bitte mehr",
    french="ne n vraiment très encore toujours aussi maintenant svp plus",
    spanish="realmente muy todavía siempre también ahora",
)
"""Words that change only the tone of a statement."""

_NOT = re.compile(r"\b\w+n['’]t\b", re.IGNORECASE)
"""don't, isn't, won't."""


def is_negated(text: str, language: str | None = None) -> bool:
    """Report whether a text contains an odd number of negations."""
    words = tokenize(text)
    negations = NEGATIONS.get(language or language_of(words), frozenset())
    return (sum(word in negations for word in words) + len(_NOT.findall(text))) % 2 == 1


def without_negations(text: str, language: str | None = None) -> str:
    """Return a text without its negations."""
    return _without(_NOT.sub(" ", text), NEGATIONS, language=language)


def sentiment(text: str, language: str | None = None) -> Literal["for", "against"] | None:
    """Return whether a text likes or dislikes something; None for neither. A negated like is a dislike, and a negated
    dislike a like.
    """
    words = tokenize(text)
    language = language or language_of(words)
    disliked = not DISLIKING.get(language, frozenset()).isdisjoint(words)
    if not disliked and LIKING.get(language, frozenset()).isdisjoint(words):
        return None
    return "for" if disliked == is_negated(text, language) else "against"


def topic_text(text: str, language: str | None = None) -> str:
    """Return the topic of a text: the text without negations and words of liking."""
    language = language or language_of(tokenize(text))
    return _without(without_negations(text, language), LIKING, DISLIKING, FILLERS, language=language)


def _without(text: str, *lists: WordLists, language: str | None) -> str:
    words = tokenize(text)
    spoken = language or language_of(words)
    gone = frozenset[str]().union(*(listed.get(spoken, frozenset()) for listed in lists))
    return " ".join(word for word in words if word not in gone)
