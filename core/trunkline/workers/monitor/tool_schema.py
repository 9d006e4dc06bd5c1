"""The definition of a tool for a model, without redundant parts. Pure.

The definition omits titles, empty defaults, Trunkline's own formats, and the null type of optional parameters. The
tools worker checks each call against the whole schema.
"""

from collections.abc import Mapping
from typing import Any

from trunkline.contracts.tools.messages import ToolSchema, ToolSpec

_EMPTY: tuple[Any, ...] = (None, "", False, 0, [], {})

_OWN_FORMATS = ("block-path", "memory-path", "memory-tree")

_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value maps names to schemas."""

_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")

_SCHEMA_VALUES = ("items", "additionalProperties", "not", "contains")

_NULL = {"type": "null"}


def compact_schema(spec: ToolSpec) -> ToolSchema:
    """Return the definition that a model needs to call the tool."""
    return ToolSchema(name=spec.name, description=spec.description, parameters=_compact(spec.parameters))


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: _compact_value(key, value) for key, value in schema.items() if not _is_redundant(key, value)}
    required = kept.get("required", ())
    if isinstance(fields := kept.get("properties"), dict):
        kept["properties"] = {
            name: part if name in required else _without_null(part) for name, part in fields.items()
        }
    return kept


def _is_redundant(key: str, value: Any) -> bool:
    match key:
        case "title" | "$schema":
            return isinstance(value, str)
        case "default":
            return any(value is one or (value == one and type(value) is type(one)) for one in _EMPTY)
        case "format":
            return value in _OWN_FORMATS
        case "additionalProperties":
            return value is False
        case "required":
            return not value
    return False


def _compact_value(key: str, value: Any) -> Any:
    if key in _SCHEMA_MAPS and isinstance(value, dict):
        return {name: _compact(part) if isinstance(part, dict) else part for name, part in value.items()}
    if key in _SCHEMA_LISTS and isinstance(value, list):
        return [_compact(part) if isinstance(part, dict) else part for part in value]
    if key in _SCHEMA_VALUES and isinstance(value, dict):
        return _compact(value)
    return value


def _without_null(part: Any) -> Any:
    """Return an optional parameter without null: ``X or null`` becomes ``X``."""
    if not isinstance(part, dict) or _NULL not in part.get("anyOf", ()):
        return part
    options = [one for one in part["anyOf"] if one != _NULL]
    rest = {key: value for key, value in part.items() if key != "anyOf"}
    return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}
