"""What a tool answered, as a person reads it: an object of JSON as a list of what it says. No I/O in here."""

import json
from typing import Any

NOTHING: tuple[Any, ...] = (None, "", [], {})


def told(result: str) -> str:
    """The lines of an object, one for each thing it says; a sentence as it is, anything else in a code fence."""
    try:
        found = json.loads(result)
    except ValueError:
        found = None
    if found is None and "\n" not in result.strip():
        return result.strip()
    if not isinstance(found, dict):
        return f"```\n{result}\n```"
    lines = [f"- {_name(key)}: {_value(value)}" for key, value in found.items() if value not in NOTHING]
    return "\n".join(lines) or "- done"


def _name(key: str) -> str:
    return key.replace("_", " ")


def _value(value: Any) -> str:
    """A value in words: yes and no, a list with commas, an object as names and values."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{_name(key)} {_value(one)}" for key, one in value.items() if one not in NOTHING)
    if isinstance(value, list):
        return ", ".join(_value(one) for one in value)
    return " ".join(str(value).split())
