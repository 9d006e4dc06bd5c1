"""The stems of whole texts, for the index.

SQLite's tokenizer stems English, a whole text at a time. The Snowball stemmers (snowballstem.org) stem other languages
word by word, which takes five times as long.
"""

from collections.abc import Iterable
from typing import Any

import apsw

from trunkline.api.nlp import (
    ENGLISH,
    LONGEST,
    WordStemmer,
    fold_case,
    has_spaceless_script,
    language_of,
    strip_accents,
    tokenize,
)

LANGUAGE_CHARACTERS = 250
"""Letters of a text that tell its language."""


class TextStemmer:
    """Stems of texts. One thread at a time."""

    def __init__(self) -> None:
        self._words = WordStemmer()
        self._porter = apsw.Connection(":memory:").fts5_tokenizer(
            "porter", ["unicode61", "remove_diacritics", "2"]
        )

    def stem_text(self, text: str) -> tuple[str, str]:
        """The language of a text and its stems, with spaces between."""
        language = language_of(tokenize(text[:LANGUAGE_CHARACTERS]))
        if language == ENGLISH and not has_spaceless_script(text):
            return language, " ".join(self._english(fold_case(text)))
        stems = self._words.of(language)
        return language, " ".join([stems[word] for word in tokenize(text)])

    def stem_word(self, word: str, languages: Iterable[str]) -> tuple[str, ...]:
        """The stems that a word has in some languages, each once."""
        return tuple(dict.fromkeys(self._stem(word, language) for language in languages))

    def _stem(self, word: str, language: str) -> str:
        if language == ENGLISH and not has_spaceless_script(word):
            return " ".join(self._english(word)) or strip_accents(word)
        return self._words.stem(word, language)

    def _english(self, text: str) -> list[str]:
        found: Iterable[Any] = self._porter(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return [word[:LONGEST] for word in found]
