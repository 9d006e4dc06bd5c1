"""Templates in arguments: ``{{ version }}``, ``{{ steps.build.url }}``, ``{{ rows[0].name }}``. Pure.

A template names a value of the run's context and does nothing else: no call, no attribute, no arithmetic. Names are
looked up in dictionaries and numbers in lists.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_TEXT = 200_000
"""The largest number of characters that a text with filled templates may have."""

STEPS = "steps"
"""The name under which templates find the result of each step."""

_MARK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*|\[[0-9]{1,6}\])*", re.ASCII)
_PART = re.compile(r"[\w-]+", re.ASCII)

Path = tuple[str | int, ...]


class TemplateError(ValueError):
    """A template cannot be read or filled. ``line`` is its line in the definition."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True, slots=True)
class Template:
    """A text with names between braces. ``parts`` are texts and paths in turn."""

    line: int
    parts: tuple[str | Path, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The names that the template uses."""
        return tuple(part for part in self.parts if isinstance(part, tuple))

    def fill(self, context: Mapping[str, Any]) -> Any:
        """Return the value of a template that is one name alone, with its type; otherwise a text.

        Raises TemplateError when a name is missing, or a list or mapping stands within a text.
        """
        if len(self.parts) == 1 and isinstance(self.parts[0], tuple):
            return find(context, self.parts[0], self.line)
        text = "".join(part if isinstance(part, str) else self._text(context, part) for part in self.parts)
        if len(text) > MAX_TEXT:
            raise TemplateError(self.line, f"The filled text has more than {MAX_TEXT} characters.")
        return text

    def _text(self, context: Mapping[str, Any], path: Path) -> str:
        value = find(context, path, self.line)
        if isinstance(value, dict | list):
            kind = "a mapping" if isinstance(value, dict) else "a list"
            raise TemplateError(
                self.line, f"{path_text(path)} is {kind}; it can stand alone, and not within a text."
            )
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)


def parse_template(text: str, line: int) -> "Template | str":
    """Return the template that a text is, or the text if it has no braces. Raises TemplateError."""
    if "{{" not in text:
        return text
    parts: list[str | Path] = []
    end = 0
    for mark in _MARK.finditer(text):
        if mark.start() > end:
            parts.append(text[end : mark.start()])
        parts.append(parse_path(mark[1], line))
        end = mark.end()
    if "{{" in text[end:]:
        raise TemplateError(line, "A template begins with {{ and does not end with }}.")
    if text[end:]:
        parts.append(text[end:])
    return Template(line, tuple(parts))


def parse_path(text: str, line: int) -> Path:
    """Return the path of a name such as ``rows[0].name``. Raises TemplateError if the text is anything else."""
    name = text.strip()
    if not _PATH.fullmatch(name):
        raise TemplateError(
            line,
            f"{name!r} is no name. A template has a name such as version, steps.build.url or rows[0].id.",
        )
    bracketed = {found.start() + 1 for found in re.finditer(r"\[", name)}
    return tuple(int(part[0]) if part.start() in bracketed else part[0] for part in _PART.finditer(name))


def path_text(path: Path) -> str:
    """Return a path as a person writes it."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def find(context: Mapping[str, Any], path: Path, line: int) -> Any:
    """Return the value at a path. Raises TemplateError, which says which part is missing, and what is there."""
    value: Any = context
    for number, part in enumerate(path):
        if isinstance(part, int):
            missing = not isinstance(value, list) or part >= len(value)
        else:
            missing = not isinstance(value, Mapping) or part not in value
        if missing:
            raise TemplateError(line, f"{path_text(path)} is missing: {_there(path[:number], value)}.")
        items: Any = value
        value = items[part]
    return value


def fill(value: Any, context: Mapping[str, Any]) -> Any:
    """Return a value in which all templates are filled. Raises TemplateError."""
    if isinstance(value, Template):
        return value.fill(context)
    if isinstance(value, dict):
        return {key: fill(inner, context) for key, inner in value.items()}
    return [fill(inner, context) for inner in value] if isinstance(value, list) else value


def templates_in(value: Any) -> Iterator[Template]:
    """Yield the templates of a value."""
    if isinstance(value, Template):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from templates_in(inner)


def _there(path: Path, value: Any) -> str:
    where = path_text(path) or "the context"
    if isinstance(value, Mapping):
        names = ", ".join(sorted(map(str, value))[:12]) or "nothing"
        return f"{where} has {names}"
    if isinstance(value, list):
        return f"{where} has {len(value)} items"
    return f"{where} is {'nothing' if value is None else 'a ' + type(value).__name__}"
