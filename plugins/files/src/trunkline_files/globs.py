"""Patterns of names and paths, as in ``*.md`` and ``src/**/*.{ts,tsx}``. Looks at no disk; none takes long."""

import re
from collections.abc import Iterator
from fnmatch import translate

MOST_ALTERNATIVES = 64

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def matches(pattern: str, path: str) -> bool:
    """Report whether a path matches, capitals or not: a pattern with ``/`` against the whole path, where ``**`` is
    any number of folders, another one against the last name. ``{a,b}`` is one or the other.
    """
    return any(_matches(one, path.lower()) for one in _alternatives(pattern.lower()))


def _alternatives(pattern: str) -> list[str]:
    """The patterns without braces that are meant; as it stands when these would be too many."""
    found = [pattern]
    while any(_BRACES.search(one) for one in found):
        found = [each for one in found for each in _expand_first(one)]
        if len(found) > MOST_ALTERNATIVES:
            return [pattern]
    return found


def _expand_first(pattern: str) -> Iterator[str]:
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for choice in braces[1].split(","):
        yield pattern[: braces.start()] + choice + pattern[braces.end() :]


def _matches(pattern: str, path: str) -> bool:
    if "/" not in pattern:
        return re.match(translate(pattern), path.rpartition("/")[2]) is not None
    names = path.split("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    reached = {0}  # how many parts are used up, in all ways at once, so that no pattern takes long
    for name in names:
        reached = set(_advance(parts, _skip_stars(parts, reached), name))
    return len(parts) in _skip_stars(parts, reached)


def _skip_stars(parts: list[str], reached: set[int]) -> set[int]:
    past = set(reached)
    for position in sorted(reached):
        while position < len(parts) and parts[position] == "**":
            position += 1
            past.add(position)
    return past


def _advance(parts: list[str], reached: set[int], name: str) -> Iterator[int]:
    for position in reached:
        if position == len(parts):
            continue
        if parts[position] == "**":
            yield position
        elif re.match(translate(parts[position]), name):
            yield position + 1
