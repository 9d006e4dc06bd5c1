"""What words have in common with their inflections. English is stemmed by SQLite's tokenizer, a whole text at a time;
other languages by the Snowball stemmers (snowballstem.org), word by word, which costs five times as much.
"""

from collections.abc import Iterable
from typing import Any

import apsw
import Stemmer

from trunkline._util.nlp.languages import language_of
from trunkline._util.nlp.tokenizer import fold_case, has_spaceless_script, strip_accents, tokenize

ENGLISH = "english"
CACHED = 30_000
"""Words of a language whose stems are remembered: some MiB, and nearly all words of any text."""

LONGEST = 64
"""Letters of a word that count: what is longer is no word but a number, a key or a picture."""

TOLD_BY = 250
"""Letters of a text that tell its language."""


class _Language(dict[str, str]):
    """The stems of a language's words, as they are asked for."""

    def __init__(self, name: str) -> None:
        self._stemmer = Stemmer.Stemmer(name, 0)

    def __missing__(self, word: str) -> str:
        stem = self[word] = strip_accents(self._stemmer.stemWord(word[:LONGEST]))
        return stem


class TextStemmer:
    """Stems of texts. One thread at a time."""

    def __init__(self) -> None:
        self._languages: dict[str, _Language] = {}
        self._porter = apsw.Connection(":memory:").fts5_tokenizer(
            "porter", ["unicode61", "remove_diacritics", "2"]
        )

    def stem_text(self, text: str) -> tuple[str, str]:
        """The language of a text and its stems, with spaces between."""
        language = language_of(tokenize(text[:TOLD_BY]))
        if language == ENGLISH and not has_spaceless_script(text):
            return language, " ".join(self._english(fold_case(text)))
        stems = self._language(language)
        return language, " ".join([stems[word] for word in tokenize(text)])

    def stem_word(self, word: str, languages: Iterable[str]) -> tuple[str, ...]:
        """The stems that a word has in some languages, each once."""
        return tuple(dict.fromkeys(self._stem(word, language) for language in languages))

    def _stem(self, word: str, language: str) -> str:
        if language == ENGLISH and not has_spaceless_script(word):
            return " ".join(self._english(word)) or strip_accents(word)
        return self._language(language)[word]

    def _english(self, text: str) -> list[str]:
        found: Iterable[Any] = self._porter(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return [word[:LONGEST] for word in found]

    def _language(self, name: str) -> _Language:
        known = self._languages.get(name)
        if known is None or len(known) > CACHED:
            known = self._languages[name] = _Language(name)
        return known
