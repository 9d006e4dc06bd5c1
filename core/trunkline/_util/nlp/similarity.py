"""How much two texts have in common, by their words alone.

The similarity is the spec's hybrid (MN-F22): .7 of a cosine and .3 of shared keywords. Without an embedder the cosine
is over stems, with a few synonyms taken for one word, so "fix the failing tests" is near to "repair the broken test".
"""

import threading
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from math import sqrt

from trunkline._util.nlp.languages import STOP_WORDS, language_of
from trunkline._util.nlp.polarity import FILLERS, without_negations
from trunkline._util.nlp.synonyms import SYNONYMS, synonyms
from trunkline._util.nlp.tokenizer import tokenize

MAX_SYNONYMS = 3
"""How many synonyms a question is widened by (MN-F22)."""

_REMEMBERED = 4096
"""Texts whose concepts are remembered: one text is compared with many."""


class _OfThread(threading.local):
    """Stemmers must not be shared between threads."""

    def __init__(self) -> None:
        from trunkline._util.nlp.stemmer import WordStemmer

        self.stems = WordStemmer()


_OF_THREAD = _OfThread()


def common_language(*texts: str) -> str:
    """The language that texts are in together, so that they are compared by the same rules."""
    return language_of(word for text in texts for word in tokenize(text))


def concept(word: str, language: str) -> str:
    """What a word stands for: its stem, or that of the first of its synonyms."""
    stem = _OF_THREAD.stems.stem(word, language)
    return _same(language).get(stem, stem)


def concepts(text: str, language: str | None = None) -> tuple[str, ...]:
    """What a text is about: its words without the empty ones, as stems, synonyms as one. Without a ``language`` by the
    rules of its own."""
    return _concepts(text, language or common_language(text))


def similarity(one: str, other: str) -> float:
    """From 0 (nothing in common) to 1 (the same words): .7 cosine + .3 shared keywords."""
    language = common_language(one, other)
    first, second = Counter(concepts(one, language)), Counter(concepts(other, language))
    if not first or not second:
        return 1.0 if one.split() == other.split() and one.split() else 0.0
    shared = first.keys() & second.keys()
    dot = sum(first[word] * second[word] for word in shared)
    lengths = sqrt(sum(n * n for n in first.values()) * sum(n * n for n in second.values()))
    keywords = len(shared) / min(len(first), len(second))
    return min(1.0, 0.7 * dot / lengths + 0.3 * keywords)


def expand_query(question: str) -> str:
    """The question with up to ``MAX_SYNONYMS`` synonyms of its words behind it."""
    language, have = common_language(question), tokenize(question)
    more = dict.fromkeys(other for word in have for other in synonyms(word, language) if other not in have)
    return " ".join([question, *more][: MAX_SYNONYMS + 1])


@lru_cache(_REMEMBERED)
def _concepts(text: str, language: str) -> tuple[str, ...]:
    empty = STOP_WORDS.get(language, frozenset()) | FILLERS.get(language, frozenset())
    words = tokenize(without_negations(text, language))
    return tuple(concept(word, language) for word in words if word not in empty)


@lru_cache
def _same(language: str) -> Mapping[str, str]:
    """The stem of the first word of its group by the stem of each."""
    found: dict[str, str] = {}
    for group in SYNONYMS.get(language, ()):
        stems = [_OF_THREAD.stems.stem(word, language) for word in group]
        for stem in stems:
            found.setdefault(stem, stems[0])
    return found
