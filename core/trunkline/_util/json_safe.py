"""The limits of values that every JSON encoder in use can encode; the encoders have different limits. Pure
functions.
"""

import math
from collections.abc import Iterator

MAX_DEPTH = 100
"""Largest depth of nested lists and objects. Encoders also count the Python stack, so their limits differ."""

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The whole numbers that every encoder here accepts."""


def json_problem(value: object) -> str:
    """Return the reason why a message cannot contain the value, such as "half a character"; "" when it can."""
    return next(_problems(value), "")


def _problems(value: object) -> Iterator[str]:
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_DEPTH:
            yield f"more than {MAX_DEPTH} lists and objects within each other"
            return
        match one:
            case str() if not _is_text(one):
                yield "half a character (a lone surrogate)"
            case bool():
                pass
            case int() if not SMALLEST <= one <= LARGEST:
                yield "a number of more than 64 bits"
            case float() if not math.isfinite(one):
                yield "a number that JSON does not have"
            case dict():
                waiting += [(part, depth + 1) for pair in one.items() for part in pair]
            case list() | tuple():
                waiting += [(part, depth + 1) for part in one]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
