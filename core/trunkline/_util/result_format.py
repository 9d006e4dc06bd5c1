"""Formats a tool's result for people: JSON on one line, which is meant for models, becomes lines of names and values.
Pure functions.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from trunkline._util.local_time import format_local_time

MAX_CHARACTERS = 1_000_000
"""The largest number of characters of a result that is formatted; longer ones are shown unchanged."""

WIDTH = 100
"""The number of characters that an object or list with plain values may take on one line."""

_EMPTY: tuple[object, ...] = (None, "", [], {})
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")


def format_result(result: str) -> str:
    """Format a result that is an object or a list on one line of JSON. Any other result is unchanged, so the content
    of a JSON file that a tool has read keeps its form.
    """
    text = result.strip()
    if not text.startswith(("{", "[")) or "\n" in text or len(text) > MAX_CHARACTERS:
        return result
    try:
        found = json.loads(text)
        return "\n".join(_lines(found)) or "(nothing)"
    except (ValueError, RecursionError):
        return result


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _entry(key, one)
    elif isinstance(value, list):
        for one in value:
            yield from _item(one)
    else:
        yield from _plain(value).split("\n")


def _entry(key: str, value: Any) -> Iterator[str]:
    """Yield a name with its value, on one line if that is short."""
    name, short = key.replace("_", " "), _short(value)
    if value in ([], {}):
        yield f"{name}: none"
    elif short is not None:
        yield f"{name}: {short}"
    elif value not in _EMPTY:
        yield f"{name}:"
        yield from (f"  {line}" for line in _lines(value))


def _item(value: Any) -> Iterator[str]:
    short = _short(value)
    lines = list(_lines(value)) if short is None else [short]
    yield from (f"{'  ' if number else '- '}{line}" for number, line in enumerate(lines))


def _short(value: Any) -> str | None:
    """Return a value on one line; None when it is empty or needs several."""
    if value in _EMPTY:
        return None
    parts = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else None
    if parts is None:
        text = _plain(value)
        return None if "\n" in text else text
    if any(isinstance(part, list | dict) and part for part in parts):
        return None
    if isinstance(value, dict):
        shown = [
            f"{key.replace('_', ' ')}: {_plain(part)}" for key, part in value.items() if part not in _EMPTY
        ]
    else:
        shown = [_plain(part) for part in parts]
    text = ", ".join(shown)
    return text if len(text) <= WIDTH and "\n" not in text else None


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if _TIME.fullmatch(text) is None:
        return text
    try:
        return format_local_time(datetime.fromisoformat(text), seconds=True)
    except (ValueError, OverflowError):  # the text looks like a time and is not valid
        return text
