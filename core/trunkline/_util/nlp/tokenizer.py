"""Splits texts into words and folds their case. Scripts without spaces yield pairs of characters."""

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
"""Thai, Lao, Burmese, Khmer, kana and Chinese characters. Korean has spaces."""

_ACCENTS = re.compile("[\u0300-\u036f]")


def tokenize(text: str) -> list[str]:
    """Return the words of a text in order, casefolded."""
    if text.isascii():
        return _WORD.findall(text.lower())
    return _WORD.findall(_SPACELESS.sub(_pairs, fold_case(text)))


def fold_case(text: str) -> str:
    """Return a text in the form in which words are compared: lower case, one form of each character."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def has_spaceless_script(text: str) -> bool:
    """Report whether a text contains a script without spaces."""
    return not text.isascii() and _SPACELESS.search(text) is not None


def query_tokens(text: str) -> list[str]:
    """Return the words of a question. In a script without spaces these are pairs of characters, and single characters
    only where they stand alone.
    """
    words = tokenize(text)
    pairs = {word[1] for word in words if len(word) == 2 and is_spaceless(word)}
    return [word for word in words if word not in pairs]


def is_spaceless(word: str) -> bool:
    """Report whether a word is in a script without spaces."""
    return _SPACELESS.fullmatch(word) is not None


def _pairs(run: re.Match[str]) -> str:
    """Return all pairs of adjacent characters, and the last character alone, so that a query of one character matches
    words that begin with it.
    """
    signs = run[0]
    return " " + " ".join(signs[at : at + 2] for at in range(len(signs))) + " "


def strip_accents(text: str) -> str:
    """Return Latin letters without accents, so that "Muller" finds "Müller". Other scripts are unchanged."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))
