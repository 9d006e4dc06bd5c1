"""The words of a query, and the question they are to the full-text table."""

import re

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a query, folded, each once."""
    return list(dict.fromkeys(word.casefold() for word in _WORD.findall(text)))[:64]


def match(words: list[str], joint: str) -> str:
    """The words, or what begins with them, joined by ``AND`` or ``OR``."""
    return joint.join(f'"{word}"*' if len(word) > 2 else f'"{word}"' for word in words)
