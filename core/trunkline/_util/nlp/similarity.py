"""The similarity of two texts, computed from their words.

The score is a weighted sum: .7 of a cosine and .3 of shared keywords. Without an embedder the cosine is computed over
stems, with synonyms as one word, so "fix the failing tests" is similar to "repair the broken test".
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
"""Largest number of synonyms that are added to a query."""

_REMEMBERED = 4096
"""The number of texts whose words and concepts are cached, because one text is compared with many."""


class _OfThread(threading.local):
    """The stemmers of each thread, because a stemmer must not be shared between threads."""

    def __init__(self) -> None:
        from trunkline._util.nlp.stemmer import WordStemmer

        self.stems = WordStemmer()


_OF_THREAD = _OfThread()


def common_language(*texts: str) -> str:
    """Return one language for all texts, so that they are compared by the same rules."""
    return language_of(word for text in texts for word in _words(text))


def concept(word: str, language: str) -> str:
    """Return the concept of a word: its stem, or the stem of the first of its synonyms."""
    stem = _OF_THREAD.stems.stem(word, language)
    return _same(language).get(stem, stem)


def concepts(text: str, language: str | None = None) -> tuple[str, ...]:
    """Return the concepts of a text: the stems of its words without stop words, with synonyms as one. By default the
    text's language is detected.
    """
    return _concepts(text, language or common_language(text))


def similarity(one: str, other: str) -> float:
    """Return the similarity from 0 (nothing in common) to 1 (the same words): .7 cosine + .3 shared keywords."""
    language = common_language(one, other)
    (first, first_square), (second, second_square) = _counted(one, language), _counted(other, language)
    if not first or not second:
        return 1.0 if one.split() == other.split() and one.split() else 0.0
    shared = first.keys() & second.keys()
    dot = sum(first[word] * second[word] for word in shared)
    lengths = sqrt(first_square * second_square)
    keywords = len(shared) / min(len(first), len(second))
    return min(1.0, 0.7 * dot / lengths + 0.3 * keywords)


def expand_query(question: str) -> str:
    """Return the question with up to ``MAX_SYNONYMS`` synonyms of its words appended."""
    language, have = common_language(question), tokenize(question)
    more = dict.fromkeys(other for word in have for other in synonyms(word, language) if other not in have)
    return " ".join([question, *more][: MAX_SYNONYMS + 1])


@lru_cache(_REMEMBERED)
def _words(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))


@lru_cache(_REMEMBERED)
def _counted(text: str, language: str) -> tuple[Mapping[str, int], int]:
    """Return how often the text has each concept, and the square of the length of that vector."""
    counts = Counter(_concepts(text, language))
    return counts, sum(n * n for n in counts.values())


@lru_cache(_REMEMBERED)
def _concepts(text: str, language: str) -> tuple[str, ...]:
    empty = STOP_WORDS.get(language, frozenset()) | FILLERS.get(language, frozenset())
    words = tokenize(without_negations(text, language))
    return tuple(concept(word, language) for word in words if word not in empty)


@lru_cache
def _same(language: str) -> Mapping[str, str]:
    """Return a table that maps the stem of each word to the stem of the first word of its synonym group."""
    found: dict[str, str] = {}
    for group in SYNONYMS.get(language, ()):
        stems = [_OF_THREAD.stems.stem(word, language) for word in group]
        for stem in stems:
            found.setdefault(stem, stems[0])
    return found
