"""Fuzzy matching: the letters of a word occur in a text in this order. Pure functions."""

import re
from collections.abc import Iterable, Sequence


def match_score(words: str, text: str) -> tuple[int, int] | None:
    """Return how well a text matches all words, smaller is better; None if it does not. A text with the words as they
    are comes before one that only has their letters in this order."""
    folded, spread, start = text.casefold(), 0, 0
    for word in words.casefold().split():
        at = folded.find(word)
        if at < 0:
            found = min(_spans(word, folded), default=None)
            if found is None:
                return None
            spread, at = spread + found[0], found[1]
        start += at
    return spread, start


def _spans(word: str, text: str) -> Iterable[tuple[int, int]]:
    """Yield the length and the beginning of each place where the letters of the word occur in this order."""
    pattern = re.compile("(?=(" + ".*?".join(map(re.escape, word)) + "))", re.DOTALL)
    for found in pattern.finditer(text):
        yield len(found[1]), found.start()


def best_matches(words: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that match, the best first; all in their order without words."""
    if not words.strip():
        return list(range(len(texts)))
    scores = ((match_score(words, text), number) for number, text in enumerate(texts))
    return [
        number for score, number in sorted((score, number) for score, number in scores if score is not None)
    ]
