<<<<<<< HEAD
"""What a word has in common with its inflections: its stem, by the Snowball stemmers (snowballstem.org)."""
=======
"""Stemming of words. English is stemmed by SQLite's tokenizer, a whole text at a time; other languages by the
Snowball stemmers (snowballstem.org), word by word, which takes five times as long."""
>>>>>>> ef52fe05 (State what the runtime, home, policy, channels and utilities do, return and raise)

from collections.abc import Mapping

import Stemmer

from trunkline._util.nlp.tokenizer import strip_accents

ENGLISH = "english"
CACHED = 30_000
"""The number of words of a language whose stems are cached: some MiB, and nearly all words of any text."""

LONGEST = 64
"""The number of letters of a word that count: a longer word is a number, a key or an encoded picture."""

<<<<<<< HEAD

SHORTEST = 3
"""Letters of an English word that may lose some, as in SQLite."""
=======
TOLD_BY = 250
"""The number of letters of a text by which its language is detected."""
>>>>>>> ef52fe05 (State what the runtime, home, policy, channels and utilities do, return and raise)


class _Language(dict[str, str]):
    """The stems of a language's words, computed on first use."""

    def __init__(self, name: str) -> None:
        self._english = name == ENGLISH
        # Porter's first stemmer, as SQLite has it, by which memory is indexed; Snowball's own English is another one.
        self._stemmer = Stemmer.Stemmer("porter" if self._english else name, 0)

    def __missing__(self, word: str) -> str:
        stem = self[word] = self._stem_english(word) if self._english else self._stem(word)
        return stem

    def _stem(self, word: str) -> str:
        return strip_accents(self._stemmer.stemWord(word[:LONGEST]))

<<<<<<< HEAD
    def _stem_english(self, word: str) -> str:
        plain = strip_accents(word)[:LONGEST]
        return str(self._stemmer.stemWord(plain)) if len(plain) >= SHORTEST else plain


class WordStemmer:
    """Stems of words. One thread at a time."""
=======
class TextStemmer:
    """Stems texts. For one thread at a time."""
>>>>>>> ef52fe05 (State what the runtime, home, policy, channels and utilities do, return and raise)

    def __init__(self) -> None:
        self._languages: dict[str, _Language] = {}

<<<<<<< HEAD
    def stem(self, word: str, language: str) -> str:
        """Return the stem of a word."""
        return self.of(language)[word]

    def of(self, language: str) -> Mapping[str, str]:
        """Return the stems of a language by the word; every word has one."""
        known = self._languages.get(language)
=======
    def stem_text(self, text: str) -> tuple[str, str]:
        """Return the language of a text and its stems, separated by spaces."""
        language = language_of(tokenize(text[:TOLD_BY]))
        if language == ENGLISH and not has_spaceless_script(text):
            return language, " ".join(self._english(fold_case(text)))
        stems = self._language(language)
        return language, " ".join([stems[word] for word in tokenize(text)])

    def stem_word(self, word: str, languages: Iterable[str]) -> tuple[str, ...]:
        """Return the stems that a word has in some languages, each once."""
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
>>>>>>> ef52fe05 (State what the runtime, home, policy, channels and utilities do, return and raise)
        if known is None or len(known) > CACHED:
            known = self._languages[language] = _Language(language)
        return known
