"""The words that a person may type to answer. An entry of a catalogue lists them: ``once: y yes; no: n no``."""

from collections.abc import Mapping
from dataclasses import dataclass

ANSWER_KEYS = frozenset({"approval.words", "terminal.words"})
"""The keys of such entries."""

REFUSALS = frozenset({"no", "deny"})
"""The answers that allow nothing."""


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """The words that a person may type. ``shown`` has the one that a prompt names for each answer, ``meanings`` the
    answer that each word means.

    Guarantees: both come from one entry, so a prompt never names a word that means another answer. A text that is not
    exactly one of the words is no answer.

    Not guaranteed: that a word is understood in another language. Only whole English words are understood in all.
    """

    shown: Mapping[str, str]
    meanings: Mapping[str, str]

    def read(self, text: str) -> str | None:
        """Return the answer that a text means; None if it is not exactly one of the words. Raises nothing."""
        return self.meanings.get(text.strip().casefold())


def answer_words(entry: str, english: str) -> AnswerWords:
    """Return the words of an entry, and the whole English words. English letters count in English only: the "a" of
    "always" begins "Ablehnen".

    Raises:
        ValueError: the entry has other answers than the English one, an answer without words, or a word that means
            two answers. An English word means what it means in English, and a letter that refuses there allows nothing.
    """
    own, others = _words_by_answer(entry), _words_by_answer(english)
    if own.keys() != others.keys():
        raise ValueError(f"it has the answers {', '.join(own)}")
    meanings, foreign = _meanings(own), _meanings(others)
    for word, answer in foreign.items():
        if (len(word) > 1 or answer in REFUSALS) and meanings.get(word, answer) != answer:
            raise ValueError(f"{word} means another answer in English")
    whole = {word: answer for word, answer in foreign.items() if len(word) > 1}
    return AnswerWords({answer: words[0] for answer, words in own.items()}, {**whole, **meanings})


def _words_by_answer(entry: str) -> dict[str, list[str]]:
    found = {}
    for part in entry.split(";"):
        answer, _, words = part.partition(":")
        if not words.split():
            raise ValueError(f"{answer.strip()} has no words")
        found[answer.strip()] = words.split()
    return found


def _meanings(words_by_answer: Mapping[str, list[str]]) -> dict[str, str]:
    meanings: dict[str, str] = {}
    for answer, words in words_by_answer.items():
        for word in words:
            if meanings.setdefault(word.casefold(), answer) != answer:
                raise ValueError(f"{word} means two answers")
    return meanings
