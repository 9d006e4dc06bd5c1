"""The JSON schemas that Anthropic can enforce: a subset of JSON Schema. No I/O."""

from typing import Any

STRING_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
"""The formats of strings that the vendor enforces."""

KEPT = {
    "string": ("format",),
    "array": ("items", "minItems"),
    "object": ("properties", "required", "additionalProperties"),
}
"""The keywords that the vendor takes for each type, besides those of every type."""

COMMON = ("$ref", "$defs", "type", "enum", "const", "anyOf", "allOf", "description", "title")
NESTED_LISTS = ("anyOf", "allOf")
NESTED_MAPS = ("$defs", "properties")


def enforceable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as the vendor takes it. The vendor refuses a schema with any other keyword.

    An object has no other properties than the named ones. A keyword that the vendor does not take, such as
    ``maximum``, moves to the description, where the model reads it.
    """
    given = dict(schema)
    if "oneOf" in given and "anyOf" not in given:
        given["anyOf"] = given.pop("oneOf")
    kind = given.get("type")
    taken = (*COMMON, *KEPT.get(str(kind), ()))
    made = {key: value for key, value in given.items() if key in taken and _is_taken(key, value)}
    rest = {key: value for key, value in given.items() if key not in made and key != "additionalProperties"}
    for key in NESTED_LISTS:
        if key in made:
            made[key] = [enforceable(one) for one in made[key]]
    for key in NESTED_MAPS:
        if key in made:
            made[key] = {name: enforceable(one) for name, one in made[key].items()}
    if isinstance(made.get("items"), dict):
        made["items"] = enforceable(made["items"])
    if kind == "object":
        made["additionalProperties"] = False
        made.setdefault("properties", {})
    if rest:
        noted = "{" + ", ".join(f"{key}: {value}" for key, value in rest.items()) + "}"
        made["description"] = "\n\n".join(filter(None, (made.get("description"), noted)))
    return made


def _is_taken(key: str, value: Any) -> bool:
    if key == "format":
        return value in STRING_FORMATS
    return value in (0, 1) if key == "minItems" else True
