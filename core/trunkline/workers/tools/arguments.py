"""The arguments of a call: converts a model's input to the types of the tool's schema, or raises an error that helps
the model to correct the input.

Models send text in place of numbers, all arguments as one text, or ``{'query="x"': ''}``. Input with only one
possible meaning is converted. Any other input is refused with the parameter, the expected type and the input.
"""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

from trunkline._util.json_safe import json_problem
from trunkline.contracts.conversations.messages import RAW_ARGUMENTS
from trunkline.contracts.tools.messages import ToolSchema, ToolSpec
from trunkline.errors import ToolError
from trunkline.workers.tools.json_schema import SchemaMismatch, coerce, describe_schema, resolve_ref

Arguments = dict[str, Any]

CallSchema = ToolSpec | ToolSchema
"""A tool, or an alias of one, with the schema of its arguments."""


def prepare_arguments(spec: CallSchema, arguments: Mapping[str, Any]) -> Arguments:
    """Return the arguments in the types of the tool's schema.

    Raises:
        ToolError: the arguments do not fit. The text names the parameter, the expected type and the input.
    """
    schema = resolve_ref(spec.parameters, spec.parameters)
    properties: Mapping[str, Any] = schema.get("properties", {})
    given = _renamed(properties, _repaired(spec, properties, _decoded(spec, arguments)))
    given = _without_nulls(schema, given, spec.parameters)
    _refuse_missing(spec, schema, given)
    _refuse_unknown(spec, schema, given)
    return {name: _fitted(spec, properties.get(name, {}), name, value) for name, value in given.items()}


def _decoded(spec: CallSchema, arguments: Mapping[str, Any]) -> Arguments:
    """Decode arguments that arrived as one text: a JSON object, possibly quoted twice, or ``name=value`` pairs."""
    if set(arguments) != {RAW_ARGUMENTS}:
        return dict(arguments)
    value = arguments[RAW_ARGUMENTS]
    for _ in range(2):
        if not isinstance(value, str):
            break
        if not value.strip():
            return {}
        value = _json_or_pairs(spec, value)
    if not isinstance(value, dict):
        raise ToolError(
            f"{spec.name}: the arguments must be a JSON object with {_parameters(spec)}. {_NOT_RUN}",
            kind="invalid_arguments",
        )
    if why := json_problem(value):
        raise ToolError(
            f"{spec.name}: the arguments contain {why}, which cannot be passed on. {_NOT_RUN}",
            kind="invalid_arguments",
        )
    return value


def _json_or_pairs(spec: CallSchema, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        pairs = _pairs(text, resolve_ref(spec.parameters, spec.parameters).get("properties", {}))
        if pairs is not None:
            return pairs
        begin = text if len(text) <= 80 else text[:77] + "..."
        raise ToolError(
            f"{spec.name}: the arguments are not valid JSON ({error}). They begin with {begin!r}. "
            f"Send an object with {_parameters(spec)}. {_NOT_RUN}",
            kind="invalid_arguments",
        ) from error


_PAIR = re.compile(r"""\s*([A-Za-z_]\w*)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,"']+)\s*,?""")
_LAST_PAIR = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([^\"'=]+?)\s*")


def _pairs(text: str, properties: Mapping[str, Any]) -> Arguments | None:
    """Return ``a="x", b=3`` as arguments; None for other text, and for names that are not parameters."""
    found: Arguments = {}
    position = 0
    while position < len(text):
        match = _PAIR.match(text, position) or _LAST_PAIR.fullmatch(text, position)
        if match is None or match.group(1) not in properties or match.group(1) in found:
            break
        found[match.group(1)] = _unquoted(match.group(2))
        position = match.end()
    if position == len(text) and found:
        return found
    single = _LAST_PAIR.fullmatch(text)
    return {single.group(1): single.group(2)} if single and single.group(1) in properties else None


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _repaired(spec: CallSchema, properties: Mapping[str, Any], arguments: Arguments) -> Arguments:
    """Return ``{'query="x"': ''}`` as ``{query: x}``. Other arguments are returned unchanged."""
    if len(arguments) != 1:
        return arguments
    ((name, value),) = arguments.items()
    if name in properties or "=" not in name or value not in ("", None):
        return arguments
    return _pairs(name, properties) or arguments


def _renamed(properties: Mapping[str, Any], arguments: Arguments) -> Arguments:
    """Rename arguments such as ``filePath`` to ``file_path``, when that parameter is not given."""
    spelled: dict[str, list[str]] = {}
    for name in properties:
        spelled.setdefault(_plain(name), []).append(name)
    renamed: Arguments = {}
    for name, value in arguments.items():
        candidates = spelled.get(_plain(name), [])
        unambiguous = (
            name not in properties
            and len(candidates) == 1
            and candidates[0] not in arguments
            and candidates[0] not in renamed
        )
        renamed[candidates[0] if unambiguous else name] = value
    return renamed


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _without_nulls(schema: Mapping[str, Any], arguments: Arguments, root: Mapping[str, Any]) -> Arguments:
    """Remove null for parameters that are optional and cannot be null."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())

    def is_given(name: str, value: Any) -> bool:
        if value is not None or name in required or name not in properties:
            return True
        try:
            return coerce(properties[name], None, name, root=root) is None
        except SchemaMismatch:
            return False

    return {name: value for name, value in arguments.items() if is_given(name, value)}


def _refuse_missing(spec: CallSchema, schema: Mapping[str, Any], arguments: Arguments) -> None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    if missing:
        wanted = ", ".join(f'"{name}" ({_asked(spec, properties.get(name, {}))})' for name in missing)
        came = ", ".join(f'"{name}"' for name in arguments) or "nothing"
        raise ToolError(
            f"{spec.name}: {wanted} {'is' if len(missing) == 1 else 'are'} missing; the call gave {came}. {_NOT_RUN}",
            kind="invalid_arguments",
        )


def _asked(spec: CallSchema, part: Mapping[str, Any]) -> str:
    text = part.get("description")
    kind = describe_schema(part, spec.parameters)
    return f"{kind}: {text}" if isinstance(text, str) and text else kind


def _refuse_unknown(spec: CallSchema, schema: Mapping[str, Any], arguments: Arguments) -> None:
    """Refuse a name that the schema does not list, unless ``additionalProperties`` permits it."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    if schema.get("additionalProperties", "properties" not in schema) is not False:
        return
    for name in arguments:
        if name in properties:
            continue
        near = difflib.get_close_matches(name, properties, 1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ToolError(
            f'{spec.name}: there is no parameter "{name}".{hint} It takes {_parameters(spec)}. {_NOT_RUN}',
            kind="invalid_arguments",
        )


def _fitted(spec: CallSchema, part: Mapping[str, Any], name: str, value: Any) -> Any:
    try:
        return coerce(part, value, name, root=spec.parameters)
    except SchemaMismatch as misfit:
        raise ToolError(
            f'{spec.name}: "{misfit.where}" must be {misfit.expected}, not {misfit.came}. {_NOT_RUN}',
            kind="invalid_arguments",
        ) from misfit


def _parameters(spec: CallSchema) -> str:
    names = resolve_ref(spec.parameters, spec.parameters).get("properties", {})
    return ", ".join(f'"{name}"' for name in names) or "no parameters"


_NOT_RUN = "The tool was not run."
