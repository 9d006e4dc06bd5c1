"""Translates a validation error of msgspec to the invalid field and a reason for the client."""

import re

Field = tuple[str | int, ...]
"""The path to a field of a body, such as ``("messages", 0, "role")``; empty for all of the body."""

_WHERE = re.compile(r" - at `(key in )?\$(.*)`$")
_PART = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")


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
    reason = re.sub(r"^Invalid enum value .*$", "It is not one of the known values.", reason)
    return field, reason if reason.endswith(".") else f"{reason}."


def json_pointer(field: Field) -> str:
    """Return the field as a JSON pointer: ``/messages/0/role``."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in field)
    return "".join(f"/{part}" for part in escaped)
