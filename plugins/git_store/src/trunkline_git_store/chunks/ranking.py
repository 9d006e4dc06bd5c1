"""The score of a chunk for a question. Arithmetic only.

Exact phrase +6; each word by its frequency and rarity; a word that is a tag 8 and more; a probable correction
of a misspelt word 1.6; up to 4 for similarity in meaning, where vectors exist; all of it multiplied by
factors for confidence, age and the requested time. The search engine decides which words are meant.
"""

from collections import Counter
from collections.abc import Sequence
from math import log, prod

import msgspec

from trunkline_git_store.search.factors import IN_PERIOD

PHRASE = 6.0
TAG = 8.0
MAX_OCCURRENCES = 5
"""Occurrences of one word that count."""

SYNONYM = 0.5
"""The weight of a synonym, relative to the word itself."""

MISSPELT = 1.6
"""The weight of a word that corrects a misspelt one."""

SIMILARITY = 4.0
"""The score of full similarity in meaning: about that of a word that occurs once. So it orders chunks that
words rank equally and finds those that words miss, and never outweighs a tag or a phrase. Measured in
docs/explanation/recall.md."""

_DAY = 86_400 * 1_000_000


class QueryWord(msgspec.Struct, frozen=True):
    """A word that is asked for, by its stems. ``weight`` is below 1 for one that means the same as what was asked, and
    ``alike`` says that it is what a misspelt word probably meant."""

    stems: tuple[str, ...]
    weight: float = 1.0
    alike: bool = False


class ChunkFeatures(msgspec.Struct, frozen=True):
    """The features that are scored: the stems of the text, in order, and of its tags. ``age`` is in
    microseconds; ``alike`` is the similarity in meaning to the question (a cosine); ``timely`` states that
    the chunk is of the requested time."""

    text: str
    tags: frozenset[str]
    confidence: float
    age: int
    alike: float = 0.0
    timely: bool = False


class ChunkScore(msgspec.Struct, frozen=True):
    """A score, the sum of ``why`` times all ``factors``, and how much of the question it covers (0 to 1)."""

    score: float
    cover: float
    why: dict[str, float]
    factors: dict[str, float]


def score_chunks(
    phrase: str, words: Sequence[QueryWord], candidates: Sequence[ChunkFeatures]
) -> list[ChunkScore]:
    """The scores of candidates, in their order. ``phrase`` are the stems of the whole question."""
    held = [Counter(one.text.split()) for one in candidates]
    rare = [_rarity(one, held) for one in words]
    return [
        _weighed(phrase, list(zip(words, rare, strict=True)), counted, one)
        for counted, one in zip(held, candidates, strict=True)
    ]


def _rarity(word: QueryWord, documents: Sequence[Counter[str]]) -> float:
    having = sum(any(stem in counted for stem in word.stems) for counted in documents)
    return log(1 + len(documents) / (1 + having))


def _weighed(
    phrase: str, weights: Sequence[tuple[QueryWord, float]], counted: Counter[str], one: ChunkFeatures
) -> ChunkScore:
    why = dict.fromkeys(("phrase", "words", "tags", "like", "meaning"), 0.0)
    why["meaning"] = SIMILARITY * max(0.0, one.alike)
    if " " in phrase and f" {phrase} " in f" {one.text} ":
        why["phrase"] = PHRASE
    covered = 0.0
    for word, rarity in weights:
        said = min(sum(counted[stem] for stem in word.stems), MAX_OCCURRENCES) * (1 + rarity)
        tagged = TAG * (1 + 0.2 * rarity) if any(stem in one.tags for stem in word.stems) else 0.0
        if word.alike:
            why["like"] += MISSPELT * bool(said or tagged)
        else:
            why["words"] += word.weight * said
            why["tags"] += word.weight * tagged
        covered += word.weight * bool(said or tagged)
    factors = _factors(one)
    signals = {name: round(part, 6) for name, part in why.items() if part}
    asked = sum(word.weight == 1 for word, _ in weights)
    score = round(sum(why.values()) * prod(factors.values()), 9)
    return ChunkScore(score, min(1.0, covered / max(1, asked)), signals, factors)


def _factors(one: ChunkFeatures) -> dict[str, float]:
    found = {"confidence": 0.85 + 0.3 * one.confidence, "age": _freshness(one.age)}
    if one.timely:
        found["date"] = IN_PERIOD
    return {name: round(factor, 6) for name, factor in found.items() if factor != 1}


def _freshness(age: int) -> float:
    if age <= 7 * _DAY:
        return 1.10
    if age <= 30 * _DAY:
        return 1.04
    return 0.92 if age > 180 * _DAY else 1.0
