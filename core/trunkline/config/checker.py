"""Converts raw values into typed sections. It reports all problems at once, not only the first."""

import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from trunkline.config.origins import Key, LayeredValues, environment_variable
from trunkline.config.problems import ConfigProblem, did_you_mean
from trunkline.config.renamed_settings import new_key
from trunkline.config.secret import Secret

S = TypeVar("S", bound=msgspec.Struct)

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
PURPOSES_HINT = "Models by purpose stand in the table models of preferences.toml or block.toml, in memory."
"""The hint about a table of the same name in another file, which a person may have meant."""

VARIABLE_REFERENCE = re.compile(r"^\$([A-Za-z_][A-Za-z0-9_]*)$")


class SettingsChecker:
    """Checks the sections of one set of sources, and collects their ``problems``."""

    def __init__(self, sources: LayeredValues) -> None:
        self.sources = sources
        self.problems: list[ConfigProblem] = []

    def section(
        self, key: Key, kind: type[S], *, passing: bool = False, ignored: Callable[[str], bool] | None = None
    ) -> S | None:
        """Return the table at ``key`` as a struct; None when it has problems, which are added to ``problems``.

        ``passing`` accepts unknown sub-tables, because they belong to plugins. ``ignored`` reports which unknown keys
        belong to other components and are no problem.
        """
        table = self.sources.get(key)
        if table is not None and not isinstance(table, dict):
            self.note(key, f"must be a table, not {_name_of(table)}")
            return None
        before = len(self.problems)
        known = _fields(kind)
        values: dict[str, Any] = {}
        for name, raw in (table or {}).items():
            if name in known:
                values[known[name].name] = self._value((*key, name), known[name].type, raw)
            elif not (passing and isinstance(raw, dict)) and not (ignored and ignored(name)):
                self._unknown((*key, name), known)
        self._missing(key, known, table or {})
        return self._build(key, kind, values) if len(self.problems) == before else None

    def note(self, key: Key, what: str, hint: str = "") -> None:
        """Add a problem with the value at ``key``."""
        self.problems.append(ConfigProblem(".".join(key), self.sources.describe_location(key), what, hint))

    def _unknown(self, key: Key, known: typing.Iterable[str]) -> None:
        if (renamed := new_key(key)) is not None:
            self.note(key, f"is now called {'.'.join(renamed)}", self._rename_hint(key, renamed))
            return
        prefix = "".join(f"{part}." for part in key[:-1])
        hint = did_you_mean(key[-1], known, prefix)
        if prefix == "models." and not hint.startswith("Did you mean"):
            hint = f"{hint} {PURPOSES_HINT}"
        self.note(key, "is not a setting", hint)

    def _rename_hint(self, key: Key, renamed: Key) -> str:
        origin = self.sources.origin(key)
        if origin.kind == "env":
            return f"Set {environment_variable(renamed)} instead of {origin.where}."
        return f"Write {renamed[-1]} instead of {key[-1]}."

    def _missing(
        self, key: Key, known: Mapping[str, msgspec.structs.FieldInfo], table: dict[str, Any]
    ) -> None:
        for name, field in known.items():
            if field.required and name not in table:
                where = str(self.sources.file)
                self.problems.append(
                    ConfigProblem(".".join((*key, name)), where, "is missing", "It has no default.")
                )

    def _build(self, key: Key, kind: type[S], values: dict[str, Any]) -> S | None:
        try:
            return kind(**values)
        except (TypeError, ValueError) as error:
            self.note(key, f"cannot be used: {error}")
            return None

    def _value(self, key: Key, kind: Any, raw: Any) -> Any:
        plain = _unwrapped(kind)
        if plain is Secret:
            return self._secret(key, raw)
        if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and isinstance(raw, dict):
            return self.section(key, plain)
        if (named := _named_structs(plain)) is not None and isinstance(raw, dict):
            return {name: self._value((*key, name), named, inner) for name, inner in raw.items()}
        if typing.get_args(plain)[:1] == (Secret,) and isinstance(raw, list):
            return self._secrets(key, kind, raw)
        return self._plain(key, kind, plain, raw)

    def _secrets(self, key: Key, kind: Any, raw: list[Any]) -> Any:
        """Return a list of references, each written as a single one is."""
        references = [_as_reference(item) for item in raw]
        if any(isinstance(item, str) for item in references):
            self.note(
                key,
                "has a secret that is written out",
                f'Put the value into an environment variable and write {key[-1]} = [{{ env = "ITS_NAME" }}].',
            )
            return None
        return self._plain(key, kind, _unwrapped(kind), references)

    def _secret(self, key: Key, raw: Any) -> Secret | None:
        origin = self.sources.origin(key)
        if origin.kind == "env" and isinstance(raw, str):
            return Secret(origin.where)
        if isinstance(raw, str) and (reference := VARIABLE_REFERENCE.match(raw)):
            return Secret(reference.group(1))
        if isinstance(raw, dict) and "env" in raw:
            return self.section(key, Secret)
        self.note(
            key,
            "is a secret and must not be written out",
            f'Put the value into an environment variable and write {key[-1]} = {{ env = "ITS_NAME" }}.',
        )
        return None

    def _plain(self, key: Key, kind: Any, plain: Any, raw: Any) -> Any:
        as_text = self.sources.origin(key).is_text and isinstance(raw, str)
        if as_text and typing.get_origin(plain) in (tuple, list, set, frozenset):
            raw = _items(raw)
        try:
            return msgspec.convert(raw, kind, strict=not as_text, dec_hook=_decode)
        except msgspec.ValidationError as error:
            self.note(key, _said(error, raw), _choices(plain, raw))
            return None


def with_absolute_paths(section: S, home: Path) -> S:
    """Return the section with every path made absolute, relative to the home folder."""
    changes: dict[str, Any] = {}
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if isinstance(value, Path):
            changes[name] = home / value.expanduser()
        elif isinstance(value, tuple) and any(isinstance(item, Path) for item in value):
            changes[name] = tuple(home / item.expanduser() for item in value)
        elif isinstance(value, tuple) and any(isinstance(item, msgspec.Struct) for item in value):
            changes[name] = tuple(with_absolute_paths(item, home) for item in value)
    return msgspec.structs.replace(section, **changes) if changes else section


def _decode(kind: type, raw: Any) -> Any:
    if kind is Path and isinstance(raw, str) and raw:
        return Path(raw)
    raise ValueError(f"must be the path of a file or folder, not {_name_of(raw)}")


def _unwrapped(kind: Any) -> Any:
    """Return the type without ``Annotated`` and without ``| None``."""
    if typing.get_origin(kind) is typing.Annotated:
        return _unwrapped(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        members = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        return _unwrapped(members[0]) if len(members) == 1 else kind
    return kind


def _as_reference(raw: Any) -> Any:
    """Return ``$NAME`` as a table of a reference, and anything else as it is."""
    found = VARIABLE_REFERENCE.match(raw) if isinstance(raw, str) else None
    return raw if found is None else {"env": found.group(1)}


def _named_structs(kind: Any) -> type[msgspec.Struct] | None:
    """Return the struct of a table whose keys are free names, such as ``dict[str, Price]``; None for any other type."""
    value = typing.get_args(kind)[1] if typing.get_origin(kind) is dict else None
    return value if isinstance(value, type) and issubclass(value, msgspec.Struct) else None


@cache
def _fields(kind: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Return the fields of a section by their names in the file. msgspec determines them anew for each call, and every
    worker checks every section at its start.
    """
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _items(text: str) -> Any:
    """Convert a text to a list: JSON, or words separated by commas."""
    if text.lstrip().startswith("["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return [item.strip() for item in text.split(",") if item.strip()]


def _said(error: msgspec.ValidationError, raw: Any) -> str:
    """Rephrase msgspec's message for a person who edits a configuration file."""
    message, _, inside = str(error).partition(" - at `$")
    place = f" (in it: {inside.rstrip('`')})" if inside else ""
    if expected := re.match(r"^Expected `([^`]+)`, got `([^`]+)`$", message):
        wanted = " or ".join(
            _KINDS.get(kind, kind) for kind in expected.group(1).split(" | ") if kind != "null"
        )
        return f"must be {wanted}, not {_KINDS.get(expected.group(2), expected.group(2))}{place}"
    if bound := re.match(r"^Expected `([^`]+)` (.+)$", message):
        return f"must be {_KINDS.get(bound.group(1), bound.group(1))} {bound.group(2)}{place}"
    if message.startswith("Invalid enum value"):
        return f"cannot be {raw!r}{place}"
    return f"cannot be used: {message}{place}" if not message.startswith("must") else message + place


def _choices(kind: Any, raw: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return did_you_mean(str(raw), [str(choice) for choice in typing.get_args(kind)])
    return ""


def _name_of(raw: object) -> str:
    names = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object"}
    return _KINDS.get(names.get(type(raw), ""), type(raw).__name__)
