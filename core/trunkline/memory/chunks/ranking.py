"""How well a chunk answers a question, by its words (RLM-F10). Arithmetic only.

Exact phrase +6; each word by how often it occurs and how rare it is; a word that is a tag 8 and more; misspelt words by
likeness; all of it weighed by confidence and age.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from math import log

import msgspec

PHRASE = 6.0
TAG = 8.0
MOST = 5
"""Occurrences of one word that count."""

SYNONYM = 0.5
_DAY = 86_400 * 1_000_000
_WORD = re.compile(r"\w+")
_SAME = (
    ("prefer", "prefers", "preference", "preferences", "like", "likes", "favorite", "favourite"),
    ("decide", "decided", "decision", "chose", "choice", "chosen"),
    ("bug", "error", "issue", "fault", "problem"),
    ("database", "db"),
    ("config", "configuration", "settings", "preferences"),
    ("repo", "repository"),
    ("docs", "documentation"),
    ("auth", "authentication", "login"),
)
_SYNONYMS: Mapping[str, frozenset[str]] = {
    word: frozenset(other for group in _SAME if word in group for other in group if other != word)
    for word in {word for group in _SAME for word in group}
}
_IDLE = frozenset(
    """a an and are as at be by do does for from how i in is it my of on or our that the their this to was we were
    what when where which who why will with you your""".split()  # noqa: SIM905  read as a text it stays short
)
"""Words that say nothing of what is asked for."""


class Candidate(msgspec.Struct, frozen=True):
    """What is weighed. ``age`` in microseconds."""

    text: str
    tags: tuple[str, ...]
    confidence: float
    age: int


class Weighed(msgspec.Struct, frozen=True):
    """A score, how much of the question it covers (0 to 1), and why."""

    score: float
    cover: float
    why: dict[str, float]


def words_of(text: str) -> list[str]:
    """The words of a text, folded."""
    return _WORD.findall(text.casefold())


def asked(query: str) -> list[str]:
    """The words of a question that say what is asked for, each once; all of them when none does."""
    found = list(dict.fromkeys(words_of(query)))[:64]
    return [word for word in found if word not in _IDLE] or found


def synonyms(word: str) -> frozenset[str]:
    """Words that mean the same."""
    return _SYNONYMS.get(word, frozenset())


def weigh(query: str, candidates: Sequence[Candidate]) -> list[Weighed]:
    """The scores of candidates, in their order."""
    wanted = asked(query)
    phrase = " ".join(words_of(query))
    texts = [words_of(one.text) for one in candidates]
    held = [Counter(text) for text in texts]
    rare = {word: _rarity(word, held) for word in wanted}
    return [
        _weighed(wanted, rare, phrase if len(wanted) > 1 else "", " ".join(text), counted, one)
        for text, counted, one in zip(texts, held, candidates, strict=True)
    ]


def _rarity(word: str, held: Iterable[Counter[str]]) -> float:
    texts = list(held)
    having = sum(word in counted for counted in texts)
    return log(1 + len(texts) / (1 + having))


def _weighed(
    wanted: list[str], rare: dict[str, float], phrase: str, text: str, counted: Counter[str], one: Candidate
) -> Weighed:
    tags = {word for tag in one.tags for word in (tag.casefold(), *words_of(tag))}
    why = {
        "phrase": PHRASE if phrase and f" {phrase} " in f" {text} " else 0.0,
        "words": 0.0,
        "tags": 0.0,
        "like": 0.0,
    }
    covered = 0
    for word in wanted:
        said = min(counted[word], MOST) * (1 + rare[word])
        same = SYNONYM * sum(min(counted[other], 1) for other in synonyms(word)) * (1 + rare[word])
        tagged = TAG * (1 + 0.2 * rare[word]) if word in tags else 0.0
        alike = 0.0 if said or tagged or same else likeness(word, (*counted, *tags))
        why["words"] += said + (0.0 if said else same)
        why["tags"] += tagged
        why["like"] += alike
        covered += bool(said or tagged or same or alike)
    score = sum(why.values()) * (0.85 + 0.3 * one.confidence) * _freshness(one.age)
    return Weighed(
        round(score, 9),
        covered / max(1, len(wanted)),
        {name: round(part, 6) for name, part in why.items() if part},
    )


def _freshness(age: int) -> float:
    if age <= 7 * _DAY:
        return 1.10
    if age <= 30 * _DAY:
        return 1.04
    return 0.92 if age > 180 * _DAY else 1.0


def likeness(word: str, others: Iterable[str]) -> float:
    """How like a misspelt word is to the most like of others that begin as it does: 1.6, 1.0 or 0."""
    if len(word) < 5:
        return 0.0
    near = (other for other in others if other[:1] == word[0] and abs(len(other) - len(word)) <= 2)
    return max((_alike(word, other) for other in near), default=0.0)


@lru_cache(maxsize=65_536)
def _alike(word: str, other: str) -> float:
    if len(other) < 4:
        return 0.0
    ratio = SequenceMatcher(None, word, other, autojunk=False).ratio()
    return 1.6 if ratio >= 0.92 else 1.0 if ratio >= 0.88 else 0.0
