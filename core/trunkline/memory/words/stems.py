"""What words have in common with their inflections, by the Snowball stemmers (snowballstem.org) in C."""

from collections.abc import Iterable

import Stemmer

from trunkline.memory.words.languages import STOP_WORDS, language_of
from trunkline.memory.words.split import plain, words_in

CACHED = 20_000
"""Words of a language whose stems are remembered."""

LONGEST = 64
"""Letters of a word that count: what is longer is no word but a number, a key or a picture."""


class Stems:
    """Stems of texts. One thread at a time."""

    def __init__(self) -> None:
        self._stemmers: dict[str, Stemmer.Stemmer] = {}

    def of_text(self, text: str) -> tuple[str, str]:
        """The language of a text and its stems, with spaces between."""
        words = words_in(text)
        language = language_of(words)
        return language, self.joined(words, language)

    def joined(self, words: list[str], language: str) -> str:
        """The stems of words, with spaces between."""
        return plain(" ".join(self._stemmer(language).stemWords([word[:LONGEST] for word in words])))

    def of_word(self, word: str, languages: Iterable[str]) -> tuple[str, ...]:
        """The stems that a word has in some languages, each once."""
        short = word[:LONGEST]
        return tuple(dict.fromkeys(plain(self._stemmer(language).stemWord(short)) for language in languages))

    def _stemmer(self, language: str) -> Stemmer.Stemmer:
        if language not in self._stemmers:
            assert language in STOP_WORDS, language
            self._stemmers[language] = Stemmer.Stemmer(language, CACHED)
        return self._stemmers[language]
