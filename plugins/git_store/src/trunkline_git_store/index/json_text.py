"""JSON as a person reads it: keys and values, line by line, without the signs. No line is added or taken away."""

import json
import re
from collections.abc import Sequence

_MEMBER = re.compile(r'("(?:[^"\\]|\\.)*+")\s*+:\s*+(.*+)')
_ITEM = re.compile(r'("(?:[^"\\]|\\.)*+"),?')
_SIGNS = re.compile(r"[\s\[\]{},]*")
_EMPTY = ("", '""', "[]", "{}")
_OPENING = ("{", "[")


def readable_lines(path: str, lines: Sequence[str]) -> list[str]:
    """The lines of a file as they are looked through and shown: those of JSON without its signs, others as they are."""
    return [_plain(line) for line in lines] if path.endswith(".json") else list(lines)


def message_lines(content: str) -> list[str]:
    """The lines of a message; of one that is JSON, as tools answer, what it says."""
    if content[:1] in _OPENING:
        try:
            lines = json.dumps(json.loads(content), indent=1, ensure_ascii=False).split("\n")
        except (ValueError, RecursionError):
            return content.split("\n")
        return list(filter(None, (_plain(line) for line in lines if not line.endswith(_OPENING)))) or [""]
    return content.split("\n")


def _plain(line: str) -> str:
    inside = line.strip()
    if member := _MEMBER.fullmatch(inside):
        key, value = _text(member[1]), member[2].removesuffix(",")
        if value in _EMPTY:
            return ""
        return f"{key}:" if value in _OPENING else f"{key}: {_text(value)}"
    if item := _ITEM.fullmatch(inside):
        return _text(item[1])
    return "" if _SIGNS.fullmatch(line) else line


def _text(value: str) -> str:
    """A value as it reads: of a text its words, on one line; anything else as it stands."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return " ".join(found.split()) if isinstance(found, str) else value
