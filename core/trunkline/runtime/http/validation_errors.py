"""Translates a validation error of msgspec to the invalid field and a reason for the client."""

import re

Field = tuple[str | int, ...]
"""The path to a field of a body, such as ``("messages", 0, "role")``; empty for all of the body."""

_WHERE = re.compile(r" - at `(key in )?\$(.*)`$")
_PART = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")


_EXPECTED = re.compile(r"Expected `([^`]+)`(?:, got `([^`]+)`| (.+))")

_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
"""The types of JSON values in words."""


def field_and_reason(message: str, within: Field = ()) -> tuple[Field, str]:
    """Return the invalid field and the reason. The value is not repeated, except the name of an unknown
    field."""
    place = _WHERE.search(message)
    reason = message[: place.start()] if place else message
    path = _PART.findall(place[2]) if place else []
    field = (*within, *(name or int(number) for name, number in path))
    if missing := _MISSING.fullmatch(reason):
        return (*field, missing[1]), "It is required."
    if unknown := _UNKNOWN.fullmatch(reason):
        return (*field, unknown[1]), "There is no such field."
    if expected := _EXPECTED.fullmatch(reason):
        return field, _expectation(*expected.groups())
    reason = re.sub(r"^Invalid (?:enum )?value .*$", "It is not one of the known values.", reason)
    return field, reason if reason.endswith(".") else f"{reason}."


def _expectation(kinds: str, got: str | None, bound: str | None) -> str:
    """Return which types of values the field takes, in words, and what it got or how a value is bounded."""
    wanted = " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | "))
    return (
        f"It must be {wanted} {bound}."
        if bound
        else f"It must be {wanted}, not {_KINDS.get(got or '', got)}."
    )


def json_pointer(field: Field) -> str:
    """Return the field as a JSON pointer: ``/messages/0/role``."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in field)
    return "".join(f"/{part}" for part in escaped)
