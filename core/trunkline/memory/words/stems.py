"""What words have in common with their inflections, by the Snowball stemmers (snowballstem.org) in C."""

from collections.abc import Iterable

import Stemmer

from trunkline.memory.words.languages import language_of
from trunkline.memory.words.split import plain, words_in

CACHED = 30_000
"""Words of a language whose stems are remembered: some MiB, and nineteen of twenty words of any text."""

LONGEST = 64
"""Letters of a word that count: what is longer is no word but a number, a key or a picture."""


class _Language(dict[str, str]):
    """The stems of a language's words, as they are asked for."""

    def __init__(self, name: str) -> None:
        self._stemmer = Stemmer.Stemmer(name, 0)

    def __missing__(self, word: str) -> str:
        stem = self[word] = plain(self._stemmer.stemWord(word[:LONGEST]))
        return stem


class Stems:
    """Stems of texts. One thread at a time."""

    def __init__(self) -> None:
        self._languages: dict[str, _Language] = {}

    def of_text(self, text: str) -> tuple[str, str]:
        """The language of a text and its stems, with spaces between."""
        words = words_in(text)
        language = language_of(words)
        stems = self._language(language)
        return language, " ".join([stems[word] for word in words])

    def of_word(self, word: str, languages: Iterable[str]) -> tuple[str, ...]:
        """The stems that a word has in some languages, each once."""
        return tuple(dict.fromkeys(self._language(language)[word] for language in languages))

    def _language(self, name: str) -> _Language:
        known = self._languages.setdefault(name, _Language(name))
        if len(known) > CACHED:
            known.clear()
        return known
