"""How much two texts have in common, by their words alone: no model, no embedder, no I/O.

The similarity is the spec's hybrid (MN-F22): .7 of a cosine and .3 of shared keywords. Without an embedder the cosine
is over stems, with a few synonyms taken for one word, so "fix the failing tests" is near to "repair the broken test".
"""

import re
from collections import Counter
from math import sqrt

_WORD = re.compile(r"\w+(?:['’]\w+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def listed(words: str) -> frozenset[str]:
    """The words of a list that is written down as text."""
    return frozenset(words.split())


STOP = listed(
    """a about an and any are as at be been but by can could did do does for from had has have he her his
    how i if in into is it its i'm it's just let me my no not now of on or our please she should so some
    than that the their them then there these they this to us was we were what when where which while
    who will with would you your really very quite also still"""
)
"""Words that say nothing of what a text is about."""

_SYNONYMS = (
    ("fix", "repair", "solve", "mend"),
    ("error", "failure", "exception", "fault", "bug"),
    ("create", "make", "build", "generate"),
    ("delete", "remove", "erase", "drop"),
    ("find", "search", "locate", "look"),
    ("show", "display", "print", "list"),
    ("change", "edit", "modify", "update"),
    ("file", "document"),
    ("folder", "directory"),
    ("run", "execute", "start", "launch"),
    ("fail", "break", "broken", "crash"),
    ("write", "compose", "draft"),
    ("explain", "describe"),
    ("test", "check", "verify"),
)
_CANON = {word: group[0] for group in _SYNONYMS for word in group}
_GROUP = {word: group for group in _SYNONYMS for word in group}

EXPANSION = 3
"""How many synonyms a query is widened by (MN-F22)."""


def tokens(text: str) -> list[str]:
    """The words of a text, folded."""
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def stem(word: str) -> str:
    """A word without the commonest English endings; what is left is for comparing, not for reading."""
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            root = word[: -len(ending)]
            root = root + "y" if ending == "ies" else root
            doubled = len(root) > 3 and root[-1] == root[-2] and ending in ("ing", "ed")
            return root[:-1] if doubled else root
    return word


def concepts(text: str) -> list[str]:
    """What a text is about: its words without the empty ones, as stems, synonyms as one."""
    kept = [word for word in tokens(text) if word not in STOP]
    return [_CANON.get(word) or _CANON.get(stem(word)) or stem(word).rstrip("e") for word in kept]


def similarity(one: str, other: str) -> float:
    """From 0 (nothing in common) to 1 (the same words): .7 cosine + .3 shared keywords."""
    first, second = Counter(concepts(one)), Counter(concepts(other))
    if not first or not second:
        return 1.0 if one.split() == other.split() and one.split() else 0.0
    shared = first.keys() & second.keys()
    dot = sum(first[word] * second[word] for word in shared)
    lengths = sqrt(sum(n * n for n in first.values()) * sum(n * n for n in second.values()))
    keywords = len(shared) / min(len(first), len(second))
    return min(1.0, 0.7 * dot / lengths + 0.3 * keywords)


def expanded(query: str) -> str:
    """The query with up to ``EXPANSION`` synonyms of its words behind it."""
    have = tokens(query)
    more = [
        other for word in have for other in _GROUP.get(word, _GROUP.get(stem(word), ())) if other not in have
    ]
    return " ".join([query, *dict.fromkeys(more).keys()][: EXPANSION + 1])


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def cut(text: str, letters: int) -> str:
    """At most so many letters, on one line, with a sign where something is missing."""
    flat = " ".join(text.split())
    return flat if len(flat) <= letters else flat[: letters - 1].rstrip() + "…"
