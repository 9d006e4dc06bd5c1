"""Raw values from all sources laid over each other, and which source each came from. Knows nothing of types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Key = tuple[str, ...]

VARIABLE_PREFIX, KEY_SEPARATOR = "TRUNKLINE_", "__"


def environment_variable(key: Key) -> str:
    """The name of the variable that sets ``key``; a variable's name has no room for ``-``."""
    return VARIABLE_PREFIX + KEY_SEPARATOR.join(key).replace("-", "_").upper()


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Where a value comes from. ``where`` is the file, the variable or the command line; empty for a default."""

    kind: Literal["default", "file", "env", "flag"] = "default"
    where: str = ""

    @property
    def is_text(self) -> bool:
        """Report whether values from there are always text, so that ``"8420"`` may stand for a number."""
        return self.kind in ("env", "flag")

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}" if self.where else self.kind


@dataclass
class LayeredValues:
    """The layers merged: nested ``values``, and the ``origins`` of each leaf."""

    file: Path
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Key, ValueOrigin] = field(default_factory=dict)

    def add_layer(self, table: Mapping[str, Any], origin: ValueOrigin, under: Key = ()) -> None:
        """Lay a nested table over what is there; its leaves win."""
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
        """Set one value, in place of what was there and below. A table that was empty so far has no origin of its own
        from then on."""
        self._forget(key)
        for depth in range(1, len(key)):
            self.origins.pop(key[:depth], None)
        self._table(key[:-1])[key[-1]] = value
        self.origins[key] = origin

    def get(self, key: Key) -> Any:
        """The raw value, a table as a dict; None when there is none."""
        node: Any = self.values
        for name in key:
            if not isinstance(node, dict) or name not in node:
                return None
            node = node[name]
        return node

    def origin(self, key: Key) -> ValueOrigin:
        """Where the value, or the first value below a table, comes from."""
        for known, origin in self.origins.items():
            if known[: len(key)] == key or key[: len(known)] == known:
                return origin
        return ValueOrigin()

    def describe_location(self, key: Key) -> str:
        """Where a person finds the value, as words for a sentence."""
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
    """The line (from 1) where ``key``, or the nearest table around it, is written; None when it is not found."""
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
    """The parts of a dotted key as it is written, without their quotation marks."""
    return tuple(part.strip().strip("\"'") for part in text.split("."))
