"""Stems words with the Snowball stemmers (snowballstem.org)."""

from collections.abc import Mapping

import Stemmer

from trunkline._util.nlp.tokenizer import strip_accents

ENGLISH = "english"
CACHED = 30_000
"""The number of words of a language whose stems are cached: some MiB, and nearly all words of any text."""

LONGEST = 64
"""The number of letters of a word that are used. A longer word is a number, a key or an encoded picture."""


SHORTEST = 3
"""The smallest number of letters of an English word that is stemmed, as in SQLite."""


class _Language(dict[str, str]):
    """The stems of a language's words, computed on first use."""

    def __init__(self, name: str) -> None:
        self._english = name == ENGLISH
        # Porter's original stemmer, which SQLite uses to index memory. Snowball's "english" is a different one.
        self._stemmer = Stemmer.Stemmer("porter" if self._english else name, 0)

    def __missing__(self, word: str) -> str:
        stem = self[word] = self._stem_english(word) if self._english else self._stem(word)
        return stem

    def _stem(self, word: str) -> str:
        return strip_accents(self._stemmer.stemWord(word[:LONGEST]))

    def _stem_english(self, word: str) -> str:
        plain = strip_accents(word)[:LONGEST]
        return str(self._stemmer.stemWord(plain)) if len(plain) >= SHORTEST else plain


class WordStemmer:
    """Stems words.

    Guarantees: the same word of a language always has the same stem.

    Not guaranteed: that an object can be used in several threads.
    """

    def __init__(self) -> None:
        self._languages: dict[str, _Language] = {}

    def stem(self, word: str, language: str) -> str:
        """Return the stem of a word. Raises KeyError as ``of``."""
        return self.of(language)[word]

    def of(self, language: str) -> Mapping[str, str]:
        """Return the table of stems of a language. It has an entry for every word. Raises KeyError for an unknown
        language.
        """
        known = self._languages.get(language)
        if known is None or len(known) > CACHED:
            known = self._languages[language] = _Language(language)
        return known
