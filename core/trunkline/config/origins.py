"""Raw values from all sources in layers, and the origin of each value. Types are not known here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Key = tuple[str, ...]

VARIABLE_PREFIX, KEY_SEPARATOR = "TRUNKLINE_", "__"


def environment_variable(key: Key) -> str:
    """Return the name of the environment variable that sets ``key``. It has ``_`` in place of ``-``."""
    return VARIABLE_PREFIX + KEY_SEPARATOR.join(key).replace("-", "_").upper()


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The origin of a value. ``where`` is the file, the variable or the command line; empty for a default."""

    kind: Literal["default", "file", "env", "flag"] = "default"
    where: str = ""

    @property
    def is_text(self) -> bool:
        """Report whether values of this origin are always text, so that ``"8420"`` may mean a number."""
        return self.kind in ("env", "flag")

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}" if self.where else self.kind


@dataclass
class LayeredValues:
    """The merged layers: nested ``values``, and the ``origins`` of each leaf."""

    file: Path
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Key, ValueOrigin] = field(default_factory=dict)

    def add_layer(self, table: Mapping[str, Any], origin: ValueOrigin, under: Key = ()) -> None:
        """Merge a nested table into the values. Its leaves replace existing values."""
        for name, value in table.items():
            key = (*under, name)
            if isinstance(value, Mapping):
                self._table(key)
                if not value:
                    self.origins[key] = origin
                self.add_layer(value, origin, key)
            else:
                self.put(key, value, origin)

    def put(self, key: Key, value: object, origin: ValueOrigin) -> None:
        """Set one value, in place of the value or table at ``key``. An empty table that contains the new value loses
        its own origin.
        """
        self._forget(key)
        for depth in range(1, len(key)):
            self.origins.pop(key[:depth], None)
        self._table(key[:-1])[key[-1]] = value
        self.origins[key] = origin

    def get(self, key: Key) -> Any:
        """Return the raw value, a table as a dict; None when there is none."""
        node: Any = self.values
        for name in key:
            if not isinstance(node, dict) or name not in node:
                return None
            node = node[name]
        return node

    def origin(self, key: Key) -> ValueOrigin:
        """Return the origin of the value, or of the first value below a table."""
        for known, origin in self.origins.items():
            if known[: len(key)] == key or key[: len(known)] == known:
                return origin
        return ValueOrigin()

    def describe_location(self, key: Key) -> str:
        """Return the location of the value as part of a sentence."""
        origin = self.origin(key)
        if origin.kind != "file":
            return origin.where or "the defaults"
        line = line_of(self.text, key)
        return f"{origin.where}, line {line}" if line else origin.where

    def _table(self, key: Key) -> dict[str, Any]:
        node = self.values
        for name in key:
            if not isinstance(node.get(name), dict):
                node[name] = {}
            node = node[name]
        return node

    def _forget(self, key: Key) -> None:
        for known in [known for known in self.origins if known[: len(key)] == key]:
            del self.origins[known]


TABLE_HEADER = re.compile(r"^\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(#.*)?$")
KEY_VALUE = re.compile(
    r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)


def line_of(text: str, key: Key) -> int | None:
    """Return the line number (from 1) of ``key``, or of the nearest table around it; None when neither is found."""
    section: Key = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := TABLE_HEADER.match(line):
            section = here = split_key(header.group(1))
        elif entry := KEY_VALUE.match(line):
            here = section + split_key(entry.group(1))
        else:
            continue
        if here == key[: len(here)] and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def split_key(text: str) -> Key:
    """Return the parts of a dotted key, without quotation marks."""
    return tuple(part.strip().strip("\"'") for part in text.split("."))
