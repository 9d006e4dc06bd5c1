"""Values of ``env`` and ``headers`` that stand in the environment instead of in the file. Nothing is held here."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import trunkline

_VARIABLE = re.compile(r"\$(?:\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_SECRET = re.compile(r"(token|key|secret|passw|authorization|credential)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EnvReference:
    """A text in which ``$NAME`` and ``${NAME}`` stand for variables of the environment."""

    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables in it."""
        return tuple(match[1] or match[2] for match in _VARIABLE.finditer(self.text))

    def reveal(self, environ: Mapping[str, str] | None = None) -> str:
        """The text with the variables' values. Use it at once and keep it nowhere.

        Raises:
            ConfigError: a variable is not set.
        """
        values = os.environ if environ is None else environ

        def value(match: re.Match[str]) -> str:
            return trunkline.Secret(env=match.group(1) or match.group(2)).reveal(values)

        return _VARIABLE.sub(value, self.text)


def parse_reference(value: Any) -> EnvReference:
    """Parse an entry: ``{"env": "NAME"}``, text, or a number. Raises ValueError for anything else."""
    match value:
        case {"env": str(name), **rest} if not rest and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            return EnvReference(f"${{{name}}}")
        case bool():
            return EnvReference("true" if value else "false")
        case str() if "\0" not in value:
            return EnvReference(value)
        case int() | float():
            return EnvReference(str(value))
        case _:
            raise ValueError('a value is text, a number or {"env": "NAME"}')


def literal_secrets(entry: Any) -> Iterator[str]:
    """The names of values that look like secrets and stand in the file itself."""
    for name, value in entry.items() if isinstance(entry, dict) else ():
        if isinstance(value, str) and value and _SECRET.search(str(name)) and not _VARIABLE.search(value):
            yield str(name)
