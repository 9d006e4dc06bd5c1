"""The words of a query, for those who look for them by eye."""

import re

_WORD = re.compile(r"\w+")


def folded_words(text: str) -> list[str]:
    """The words of a query, folded, each once."""
    return list(dict.fromkeys(word.casefold() for word in _WORD.findall(text)))[:64]
