"""Texts as lists of words, as sentences, and cut short."""

import re

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def split_list(words: str) -> frozenset[str]:
    """The words of a list that is written down as text."""
    return frozenset(words.split())


def split_words(text: str) -> list[str]:
    """The words of a text, folded; "don't" is one."""
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is: four bytes of UTF-8 to one, as for every context."""
    return -(-len(text.encode(errors="replace")) // 4)


def cut(text: str, max_characters: int) -> str:
    """Return the text on one line, with at most ``max_characters`` characters and an ellipsis where it was cut."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_characters else flat[: max_characters - 1].rstrip() + "…"
