"""Fits a value to a JSON schema: checks the value, and converts text to the type of the schema.

It supports the part of JSON Schema that tools use: types, enums, objects, arrays, ranges, lengths, patterns,
``anyOf``, and ``$ref`` into the same schema. Unknown keywords are not checked. No tools, no I/O.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

_DEPTH = 32


class SchemaMismatch(ValueError):
    """A value does not fit. ``where`` is the parameter; ``expected`` and ``came`` are parts of a sentence."""

    def __init__(self, where: str, expected: str, came: str) -> None:
        super().__init__(f"{where}: expected {expected}, got {came}")
        self.where = where
        self.expected = expected
        self.came = came


def coerce(schema: Schema, value: Any, where: str, *, root: Schema | None = None, depth: int = 0) -> Any:
    """Return the value in the type of the schema.

    Raises:
        SchemaMismatch: the value does not fit, even after conversion from text.
    """
    top = schema if root is None else root
    if depth > _DEPTH:
        raise SchemaMismatch(where, f"at most {_DEPTH} levels", "a deeper value")
    schema = resolve_ref(schema, top)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return _first_that_fits(schema[word], value, where, top, depth)
    for part in schema.get("allOf", ()):
        value = coerce(part, value, where, root=top, depth=depth + 1)
    return _chosen(schema, _typed(schema, value, where, top, depth), where)


def resolve_ref(schema: Schema, root: Schema) -> Schema:
    """Return the schema with its ``$ref`` resolved; a dangling reference allows any value."""
    for _ in range(_DEPTH):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = root
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        schema = found if isinstance(found, Mapping) else {}
    return {}


def describe_schema(schema: Schema, root: Schema) -> str:
    """Return the schema in words: ``a whole number``, ``one of "a", "b"``."""
    schema = resolve_ref(schema, root)
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(one, ensure_ascii=False) for one in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(describe_schema(one, root) for one in choices))
    types = _types(schema)
    return " or ".join(_NAMES.get(one, one) for one in types) if types else "a value"


def describe_value(value: Any) -> str:
    """Return a value in the form that errors show: shortened JSON and its type."""
    if value is None:
        return "null"
    text = json.dumps(value, ensure_ascii=False, default=str)
    short = text if len(text) <= 80 else text[:77] + "..."
    return f"{short} ({_NAMES[_type_of(value)]})"


_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "object"


def _types(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(kind) if isinstance(kind, (list, tuple)) else ()


def _first_that_fits(choices: Any, value: Any, where: str, root: Schema, depth: int) -> Any:
    """Return the value unchanged if one of the choices accepts it, otherwise converted by the first choice that can."""
    results = []
    last: SchemaMismatch | None = None
    for choice in choices:
        try:
            results.append(coerce(choice, value, where, root=root, depth=depth + 1))
        except SchemaMismatch as misfit:
            last = misfit
    for result in results:
        if type(result) is type(value) and result == value:
            return result
    if results:
        return results[0]
    if last is not None and len(choices) == 1:
        raise last
    raise SchemaMismatch(where, describe_schema({"anyOf": choices}, root), describe_value(value))


def _typed(schema: Schema, value: Any, where: str, root: Schema, depth: int) -> Any:
    types = _types(schema)
    if not types:
        return value
    actual = _type_of(value)
    kind = next((one for one in types if one == actual or (one == "number" and actual == "integer")), None)
    if kind is None:
        kind, value = _read_as(types, value, where, describe_schema(schema, root))
    return _CHECKS.get(kind, _unchecked)(schema, value, where, root, depth)


def _read_as(types: tuple[str, ...], value: Any, where: str, expected: str) -> tuple[str, Any]:
    for kind in types:
        reader = _READERS.get(kind)
        read = reader(value) if reader is not None else None
        if read is not None:
            return kind, read[0]
    raise SchemaMismatch(where, expected, describe_value(value))


def _integer(value: Any) -> tuple[int] | None:
    if isinstance(value, float) and value.is_integer():
        return (int(value),)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,300}(\.0+)?\s*", value):
        return (int(value.strip().partition(".")[0]),)
    return None


def _number(value: Any) -> tuple[float] | None:
    if not isinstance(value, str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return (number,) if math.isfinite(number) else None


def _boolean(value: Any) -> tuple[bool] | None:
    word = value.strip().lower() if isinstance(value, str) else value if isinstance(value, int) else None
    if word in ("true", "yes", "on", "1", 1):
        return (True,)
    return (False,) if word in ("false", "no", "off", "0", 0) else None


def _null(value: Any) -> tuple[None] | None:
    return (None,) if isinstance(value, str) and value.strip().lower() in ("null", "none", "") else None


def _string(value: Any) -> tuple[str] | None:
    return (json.dumps(value),) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _json_of(kind: type) -> Callable[[Any], tuple[Any] | None]:
    def read(value: Any) -> tuple[Any] | None:
        try:
            decoded = json.loads(value) if isinstance(value, str) else None
        except (ValueError, RecursionError):
            return None
        return (decoded,) if isinstance(decoded, kind) else None

    return read


_READERS: dict[str, Callable[[Any], tuple[Any] | None]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "string": _string,
    "array": _json_of(list),
    "object": _json_of(dict),
}


def _unchecked(schema: Schema, value: Any, where: str, root: Schema, depth: int) -> Any:
    return value


def _check_text(schema: Schema, value: Any, where: str, root: Schema, depth: int) -> Any:
    _check_size(schema, len(value), where, "minLength", "maxLength", "characters")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _matches(pattern, value):
        raise SchemaMismatch(where, f"text that matches {pattern}", describe_value(value))
    return value


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True  # a pattern of another dialect cannot be checked here; the tool must check the value


def _check_range(schema: Schema, value: Any, where: str, root: Schema, depth: int) -> Any:
    bounds: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
        ("minimum", "at least", lambda a, b: bool(a >= b)),
        ("maximum", "at most", lambda a, b: bool(a <= b)),
        ("exclusiveMinimum", "more than", lambda a, b: bool(a > b)),
        ("exclusiveMaximum", "less than", lambda a, b: bool(a < b)),
    )
    for word, text, holds in bounds:
        if word in schema and not holds(value, schema[word]):
            raise SchemaMismatch(
                where, f"{describe_schema(schema, root)}, {text} {schema[word]}", describe_value(value)
            )
    return value


def _check_list(schema: Schema, value: Any, where: str, root: Schema, depth: int) -> Any:
    _check_size(schema, len(value), where, "minItems", "maxItems", "items")
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return value
    return [coerce(items, one, f"{where}[{n}]", root=root, depth=depth + 1) for n, one in enumerate(value)]


def _check_object(schema: Schema, value: Any, where: str, root: Schema, depth: int) -> Any:
    properties: Schema = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise SchemaMismatch(
                f"{where}.{name}", describe_schema(properties.get(name, {}), root), "nothing"
            )
    rest = schema.get("additionalProperties", True)
    fitted = {}
    for name, one in value.items():
        part = properties.get(name, rest if isinstance(rest, Mapping) else None)
        if part is None and rest is False:
            raise SchemaMismatch(
                f"{where}.{name}", f"only {', '.join(properties) or 'nothing'}", "an unknown name"
            )
        fitted[name] = (
            one if part is None else coerce(part, one, f"{where}.{name}", root=root, depth=depth + 1)
        )
    return fitted


def _check_size(schema: Schema, size: int, where: str, least: str, most: str, unit: str) -> None:
    if size < schema.get(least, 0):
        raise SchemaMismatch(where, f"at least {schema[least]} {unit}", f"{size}")
    if most in schema and size > schema[most]:
        raise SchemaMismatch(where, f"at most {schema[most]} {unit}", f"{size}")


def _chosen(schema: Schema, value: Any, where: str) -> Any:
    """Return the allowed value that equals this one, or that has another case or type."""
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is None or any(type(one) is type(value) and one == value for one in allowed):
        return value
    alike = [one for one in allowed if str(one).lower() == str(value).strip().lower()]
    if len(alike) != 1:
        raise SchemaMismatch(where, describe_schema(schema, schema), describe_value(value))
    return alike[0]


_CHECKS: dict[str, Callable[[Schema, Any, str, Schema, int], Any]] = {
    "string": _check_text,
    "integer": _check_range,
    "number": _check_range,
    "array": _check_list,
    "object": _check_object,
}
