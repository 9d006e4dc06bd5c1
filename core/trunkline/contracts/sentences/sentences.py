"""Sentences: puts sentences into words, in the language of the owner."""

import logging
import re
from collections.abc import Iterable, Mapping

from trunkline.contracts.sentences.answer_words import ANSWER_KEYS, AnswerWords, answer_words
from trunkline.contracts.sentences.catalogue import Sentence, SentenceCatalogue
from trunkline.contracts.sentences.english import ENGLISH
from trunkline.contracts.sentences.german import GERMAN

log = logging.getLogger(__name__)

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+)\}")

CATALOGUES = (SentenceCatalogue("en", ENGLISH), SentenceCatalogue("de", GERMAN))
"""The languages of the platform itself."""

TRANSLATED = ("error.", "ask.")
"""The beginnings of keys whose English texts reach a channel from other workers."""


class Sentences:
    """The sentences of the platform and of ``catalogues``, in one language.

    Guarantees: what a language lacks is in English. A value is put into a text as it is, and never read as a template.

    Not guaranteed: that a text of a plugin is used: see ``SentenceCatalogue``.
    """

    def __init__(self, catalogues: Iterable[SentenceCatalogue] = (), *, language: str = "en") -> None:
        self.language = language
        """The BCP 47 tag of the language. It may be changed at any time."""
        self._texts: dict[str, dict[str, str]] = {}
        for one in (*CATALOGUES, *map(_without_platform_keys, catalogues)):
            known = self._texts.setdefault(one.tag.lower(), {})
            known.update({key: text for key, text in one.texts.items() if key not in known})
        self._english = self._texts["en"]
        for tag, texts in self._texts.items():
            self._drop_misfits(tag, texts)

    def __call__(self, key: str, **values: object) -> str:
        """Return a sentence. Raises KeyError if no language has it."""
        return _filled(self._text(key), {name: str(value) for name, value in values.items()})

    def words(self, key: str) -> AnswerWords:
        """Return the words that a person may type to answer: those of this language, and whole English words. ``key``
        is ``approval.words`` or ``terminal.words``. Raises KeyError for a key that no language has.
        """
        return answer_words(self._text(key), ENGLISH[key])

    def put(self, sentences: Iterable[Sentence]) -> str:
        """Return sentences, each on a line of its own; those that no plugin here knows are left out. Raises nothing."""
        known = [one for one in sentences if one.key in self._english]
        return "\n".join(_filled(self._text(one.key), one.values) for one in known)

    def translate(self, text: str) -> str:
        """Return a text of another worker, which is in English, in this language. A line that is no sentence of the
        platform stays as it is. Raises nothing.
        """
        if primary_language(self.language) == "en":
            return text
        return "\n".join(map(self._translated, text.split("\n")))

    def _translated(self, line: str) -> str:
        for key, text in ENGLISH.items():
            if key.startswith(TRANSLATED) and (found := _pattern(text).fullmatch(line)) is not None:
                return _filled(self._text(key), found.groupdict())
        return line

    def _text(self, key: str) -> str:
        """Return the text of the language, else of its parent (``de`` of ``de-AT``), else the English one."""
        tag = self.language.lower()
        while tag:
            text = self._texts.get(tag, {}).get(key, "")
            if text:
                return text
            tag = tag.rpartition("-")[0]
        return self._english[key]

    def _drop_misfits(self, tag: str, texts: dict[str, str]) -> None:
        for key in [key for key in texts if key in self._english]:
            if placeholders(texts[key]) != placeholders(self._english[key]):
                log.warning("the sentence %s of %s has other placeholders, so it is in English", key, tag)
                del texts[key]
        for key in ANSWER_KEYS & texts.keys():
            try:
                answer_words(texts[key], ENGLISH[key])
            except ValueError as error:
                log.warning("the words %s of %s are not used: %s", key, tag, error)
                del texts[key]


def placeholders(text: str) -> set[str]:
    """Return the names in braces."""
    return set(PLACEHOLDER.findall(text))


def primary_language(tag: str) -> str:
    """Return the first part of a BCP 47 tag, in lower case: ``de`` of ``de-AT``."""
    return tag.lower().partition("-")[0]


def _without_platform_keys(catalogue: SentenceCatalogue) -> SentenceCatalogue:
    """Return a plugin's catalogue without the platform's sentences, if the platform itself speaks this language. A
    region is not another language: no plugin writes "Allow once" on the button that denies, for ``en-GB`` either.
    """
    if primary_language(catalogue.tag) not in {one.tag for one in CATALOGUES}:
        return catalogue
    own = {key: text for key, text in catalogue.texts.items() if key not in ENGLISH}
    return SentenceCatalogue(catalogue.tag, own)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _pattern(text: str) -> re.Pattern[str]:
    parts = PLACEHOLDER.split(text)  # text and names in turn
    words = (re.escape(part) if at % 2 == 0 else f"(?P<{part}>.+?)" for at, part in enumerate(parts))
    return re.compile("".join(words))


ENGLISH_SENTENCES = Sentences()
"""The English sentences, for programs and for people whose language is not known."""
