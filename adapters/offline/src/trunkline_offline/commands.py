"""The plain form in which a person runs a tool: ``/tool NAME key=value key="two words" json={...}``. No I/O in here."""

import json
import re
from collections.abc import Sequence
from typing import Any

from trunkline import ToolSchema

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'([^\']*)\'')
_BARE = re.compile(r"\S+")
_KEY = re.compile(r"\s*([A-Za-z_][\w.-]*)=")


class BadCommand(Exception):
    """The command cannot be run; the text tells the person why, and what would do."""


def listing(tools: Sequence[ToolSchema]) -> str:
    """The tools that can be run, with their parameters."""
    if not tools:
        return "No tools are offered here."
    lines = (f"- `{_usage(tool)}`: {tool.description.partition(chr(10))[0]}" for tool in tools)
    return "Tools that I can run for you with `/tool NAME key=value`:\n\n" + "\n".join(lines)


def command_of(text: str, tools: Sequence[ToolSchema]) -> tuple[str, dict[str, Any]] | None:
    """The tool and its arguments; None when the text is ``/tool`` alone.

    Raises:
        BadCommand: the tool is unknown, or the arguments cannot be read.
    """
    words = text.removeprefix("/tool").strip()
    if not words:
        return None
    name, _, rest = words.partition(" ")
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        raise BadCommand(f"There is no tool {name!r} here. {listing(tools)}")
    return name, _arguments(rest, tool)


def _arguments(text: str, tool: ToolSchema) -> dict[str, Any]:
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    position, text = 0, text.strip()
    while position < len(text):
        key = _KEY.match(text, position)
        if key is None:
            raise BadCommand(f"I cannot read {text[position:]!r}. The form is: `/tool {_usage(tool)}`")
        value, position = _value(text, key.end(), properties.get(key[1], {}))
        if key[1] == "json" and "json" not in properties and isinstance(value, dict):
            arguments.update(value)
        else:
            arguments[key[1]] = value
    return arguments


def _value(text: str, start: int, schema: dict[str, Any]) -> tuple[Any, int]:
    """One value, and where it ends: a quoted text, JSON in brackets, or a bare word."""
    if quoted := _QUOTED.match(text, start):
        single = quoted[2] is not None
        return (quoted[2] if single else _unescaped(quoted[1])), quoted.end()
    if text[start : start + 1] in ("{", "["):
        try:
            return json.JSONDecoder().raw_decode(text, start)
        except ValueError as error:
            raise BadCommand(f"The JSON at {text[start:]!r} cannot be read: {error}.") from None
    bare = _BARE.match(text, start)
    word, end = (bare[0], bare.end()) if bare else ("", start)
    return _typed(word, schema), end


def _unescaped(text: str) -> str:
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text)


def _typed(word: str, schema: dict[str, Any]) -> Any:
    """A bare word as what the tool wants: JSON is read only where the tool wants no text."""
    if schema.get("type") in ("string", None) and not schema.get("anyOf"):
        return word
    try:
        return json.loads(word)
    except ValueError:
        return word


def _usage(tool: ToolSchema) -> str:
    required = tool.parameters.get("required", ())
    names = tool.parameters.get("properties", {})
    return " ".join([tool.name, *(f"{key}=…" if key in required else f"[{key}=…]" for key in names)])
