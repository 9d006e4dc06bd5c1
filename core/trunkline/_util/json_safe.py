"""What of a value a message can carry as JSON, everywhere it goes: encoders differ in what they choke on. Pure."""

import math
from collections.abc import Iterator

MAX_DEPTH = 100
"""Lists and objects within each other. Encoders count the Python stack too, so what one takes another may not."""

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""Whole numbers that every encoder here takes."""


def json_problem(value: object) -> str:
    """Why no message can carry it, such as "half a character"; "" when one can."""
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
