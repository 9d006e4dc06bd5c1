"""A field of a form that a server wants filled in: what a person is asked, and their words as its value.

The schemas are the flat ones of elicitation: texts, numbers, booleans, and choices of one or of several.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trunkline.api.text import escape_tag

TRIES = 3
"""The number of times that a person is asked for the same value."""

MOST_OPTIONS, LONGEST_OPTION, LONGEST = 19, 200, 1_000
"""Choices that are proposed, characters of each, and characters of a server's own words."""

LEAVE_OUT = "(leave it out)"
YES, NO = "yes", "no"
DECLINE = "decline"


class InvalidAnswerError(Exception):
    """The words are no value of the field; the text says what would be."""


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form."""

    name: str
    schema: Mapping[str, Any]
    required: bool

    @property
    def is_optional(self) -> bool:
        """Report whether the server does without an answer, or says what it takes instead."""
        return not self.required or "default" in self.schema

    @property
    def question(self) -> str:
        """Return the question for a person."""
        title = str(self.schema.get("title") or self.name)
        about = str(self.schema.get("description") or "")
        default = f" (otherwise: {self.schema['default']})" if "default" in self.schema else ""
        several = " Several, separated by commas." if self.schema.get("type") == "array" else ""
        return one_line(f"{title}{default}{f': {about}' if about else ''}{several}")

    @property
    def options(self) -> list[str]:
        """The answers that are proposed."""
        shown = [YES, NO] if self.schema.get("type") == "boolean" else list(self._choices)
        fit = [one for one in shown if 0 < len(one) <= LONGEST_OPTION][:MOST_OPTIONS]
        single = self.schema.get("type") != "array"
        return [*(fit if single else []), *([LEAVE_OUT] if self.is_optional else [])]

    def parse(self, words: str) -> Any:
        """Parse the person's answer as a value of this field. Raises InvalidAnswerError."""
        match self.schema.get("type"):
            case "boolean":
                return _boolean(words)
            case "integer" | "number":
                return self._number(words)
            case "array":
                return [self._choice(part.strip()) for part in words.split(",") if part.strip()]
            case _:
                return self._choice(words) if self._choices else words

    @property
    def _choices(self) -> dict[str, str]:
        """The values by what is shown of them."""
        schema = self.schema.get("items") if self.schema.get("type") == "array" else self.schema
        schema = schema if isinstance(schema, Mapping) else {}
        titled = [
            one for one in _list(schema.get("oneOf") or schema.get("anyOf")) if isinstance(one, Mapping)
        ]
        if titled:
            return {_line(one.get("title") or one.get("const")): str(one.get("const")) for one in titled}
        values, names = _list(schema.get("enum")), _list(schema.get("enumNames"))
        return {_line(names[at] if at < len(names) else one): str(one) for at, one in enumerate(values)}

    def _choice(self, words: str) -> str:
        choices = self._choices
        for shown, value in choices.items():
            if words.casefold() in (shown.casefold(), value.casefold()):
                return value
        raise InvalidAnswerError(f"One of: {', '.join(choices)[:LONGEST]}.")

    def _number(self, words: str) -> float | int:
        try:
            number = int(words) if self.schema.get("type") == "integer" else float(words)
        except ValueError as error:
            raise InvalidAnswerError("Enter a number.") from error
        low, high = (_bound(self.schema.get(name)) for name in ("minimum", "maximum"))
        if number != number or (low is not None and number < low) or (high is not None and number > high):
            bounds = [
                f"{word} {bound}"
                for word, bound in (("at least", low), ("at most", high))
                if bound is not None
            ]
            raise InvalidAnswerError(
                f"Enter a number of {' and '.join(bounds)}." if bounds else "Enter a number."
            )
        return number


def parse_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """The fields in the server's order."""
    parts, required = schema.get("properties"), _list(schema.get("required"))
    if not isinstance(parts, Mapping):
        return []
    return [
        FormField(name, part, name in required) for name, part in parts.items() if isinstance(part, Mapping)
    ]


def _boolean(words: str) -> bool:
    said = words.casefold()
    if said in (YES, "y", "true"):
        return True
    if said in (NO, "n", "false"):
        return False
    raise InvalidAnswerError("Answer yes or no.")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _bound(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _line(text: object) -> str:
    return " ".join(str(text).split())


def one_line(text: str, most: int = LONGEST) -> str:
    """A server's own words on one line, bounded, and unable to end a mark around data."""
    line = escape_tag(_line(text))
    return line if len(line) <= most else line[: most - 1] + "…"
