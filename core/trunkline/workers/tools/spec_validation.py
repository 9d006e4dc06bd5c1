"""Validation of a tool's definition, for the catalogue and for the contract suite. No I/O."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from trunkline.contracts.tools.messages import Category, Effect, ToolSpec

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}


def spec_problems(spec: ToolSpec) -> list[str]:
    """Return the problems of the definition, a sentence each; empty when it is valid."""
    return list(_of_definition(spec)) + list(_of_parameters(spec))


def _of_definition(spec: ToolSpec) -> Iterator[str]:
    if NAME.fullmatch(spec.name) is None:
        yield f"the name {spec.name!r} must be 1 to 64 of A-Z a-z 0-9 _ -"
    if not spec.description.strip():
        yield "the description is empty; the model chooses tools by it"
    if spec.effect not in get_args(Effect):
        yield f"the effect {spec.effect!r} must be one of {', '.join(get_args(Effect))}"
    if spec.category not in get_args(Category):
        yield f"the category {spec.category!r} must be one of {', '.join(get_args(Category))}"
    if spec.read_only and spec.effect != "exec":
        yield f"read_only is for tools that run programs, and the effect is {spec.effect!r}"
    if not (math.isfinite(spec.timeout) and spec.timeout > 0):
        yield f"the timeout {spec.timeout!r} must be a number of seconds above 0"


def _of_parameters(spec: ToolSpec) -> Iterator[str]:
    schema = spec.parameters
    if schema.get("type") != "object":
        yield 'the parameters must be a JSON schema with "type": "object"'
        return
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        yield 'the "properties" of the parameters must be an object'
        return
    for name in schema.get("required", ()):
        if name not in properties:
            yield f"the required parameter {name!r} is not among the properties"
    for name in spec.paths:
        if name not in properties:
            yield f"the path parameter {name!r} is not among the properties"
    for name in spec.urls:
        if name not in properties:
            yield f"the URL parameter {name!r} is not among the properties"
    if spec.argv and spec.argv not in properties:
        yield f"the argv parameter {spec.argv!r} is not among the properties"
    for name in (*spec.memory_paths, *spec.memory_trees):
        if name not in properties:
            yield f"the memory path parameter {name!r} is not among the properties"
    for name in spec.unbound_params:
        if name not in properties:
            yield f"the unbound parameter {name!r} is not among the properties"
        if name in (*spec.paths, *spec.memory_paths, *spec.memory_trees):
            yield f"the parameter {name!r} is a path, which a lasting approval must bind"
    for name, part in properties.items():
        yield from _of_schema(name, part)


def _of_schema(name: str, schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        yield f"the schema of {name!r} must be an object"
        return
    kind = schema.get("type")
    for one in kind if isinstance(kind, (list, tuple)) else [kind]:
        if one is not None and one not in _TYPES:
            yield f"the parameter {name!r} has the unknown type {one!r}"
    if "items" in schema:
        yield from _of_schema(f"{name}[]", schema["items"])
    for word in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(word, ()):
            yield from _of_schema(name, part)
