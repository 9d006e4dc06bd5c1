"""TOML files from outside: the settings of a block, and preferences. Pure functions.

Python's ``tomllib`` takes quadratic time in the length of a dotted key, fails on deep nesting, and lets the
ValueError of an overlong number escape. Agents may write ``preferences.toml``, which every turn reads. So text that
could delay a worker is refused before it is parsed, with the same error as text that is not TOML.
"""

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

MAX_CHARACTERS = 128 * 1024
"""The largest number of characters of a text."""

MAX_DOTS = 500
"""The largest number of dots in one line: a key with so many parts takes some milliseconds, and a whole text
of such lines less than a second."""


class UnreadableToml(tomllib.TOMLDecodeError):
    """The text may be TOML, but exceeds a limit and is not parsed."""

    def __init__(self, why: str) -> None:
        ValueError.__init__(self, why)


class SettingsFileError(ValueError):
    """A settings file that a person must correct. The text names the file, the line if it is known, and the problem.
    Callers that use the file as a guard refuse everything meanwhile, because the file's intention is unknown.
    """


def read_settings(path: str, text: str, kind: type[S]) -> S:
    """Return the settings in a file.

    A type that accepts unknown keys ignores them, except a key that is similar to one of its own: a typing error in
    ``model`` must not send a text to another model. A former key (``renamed`` of the type: the table and key of now)
    counts as the key of now, unless the file has that, too.

    Raises:
        SettingsFileError: the text is not TOML, or does not match the type.
    """
    try:
        table = _with_current_keys(read_toml(text), getattr(kind, "renamed", {}))
        settings = msgspec.convert(table, kind)
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(f"{path}: {error}.") from error
    except msgspec.ValidationError as error:
        raise SettingsFileError(f"{path}{_line(text, str(error))}: {error}.") from error
    own = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in table.keys() - set(own):
        if near := get_close_matches(key, own, 1, cutoff=0.8):
            line = _line(text, f"there is no `{key}`")
            raise SettingsFileError(f"{path}{line}: there is no {key}. Did you mean {near[0]}?")
    return settings


def _with_current_keys(table: dict[str, Any], renamed: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    for former in table.keys() & renamed.keys():
        above, key = renamed[former]
        below = table.setdefault(above, {})
        if isinstance(below, dict):  # else the type refuses it
            below.setdefault(key, table[former])
            del table[former]
    return table


def _line(text: str, message: str) -> str:
    return line_of(text, key_in_message(message))


def line_of(text: str, name: str) -> str:
    """Return the line of a key or table as ``, line 3``; "" when it is not found."""
    if not (key := re.escape(name)):
        return ""
    for number, line in enumerate(text.split("\n"), start=1):
        if re.match(rf"""\s*(?:["']?{key}["']?\s*[.=]|\[.*\b{key}["']?\])""", line):
            return f", line {number}"
    return ""


def key_in_message(message: str) -> str:
    """Return the key that a message about a file refers to: the unknown key, otherwise the last key of the path; ""
    for none.
    """
    unknown = re.search(r"unknown field `([^`]+)`|there is no `([^`]+)`", message)
    if unknown is not None:
        return unknown[1] or unknown[2]
    path = re.findall(r"`\$([^`]*)`", message)
    return re.sub(r"\[[^\]]*\]", "", path[-1]).rpartition(".")[2] if path else ""


def read_toml(text: str) -> dict[str, Any]:
    """Return the table of a text.

    Raises:
        tomllib.TOMLDecodeError: the text is not TOML, is longer than ``MAX_CHARACTERS``, has more than ``MAX_DOTS``
            dots in a line, is nested too deeply, or contains a number with too many digits.
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableToml(f"it has {len(text)} characters; the limit is {MAX_CHARACTERS}")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_DOTS:
            raise UnreadableToml(
                f"line {number} has more than {MAX_DOTS} dots; write long texts in several lines"
            )
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise UnreadableToml("it is nested too deeply") from error
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:
        raise UnreadableToml(str(error)) from error
