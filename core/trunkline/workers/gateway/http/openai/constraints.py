"""The constraints of OpenAI's two APIs: tools, ``tool_choice`` and the format of the text. Pure.

Chat completions nest what the Responses API has at the top: ``{"type": "function", "function": {"name": ...}}`` is
``{"type": "function", "name": ...}`` there. Both forms are accepted on both surfaces.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline._util.json_schema import find_schema_problem
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.openai.schemas import ToolIn

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME_RULE = "A name has 1 to 64 letters, digits, _ and -."
TOOL_CHOICE_RULE = "It is auto, none, required, a function, or allowed_tools."

Path = tuple[str | int, ...]


def check_sampling(temperature: float | None, top_p: float | None, **limits: int | None) -> None:
    """Refuse values out of bounds. ``limits`` are numbers of tokens by the name of their field. Raises InvalidField."""
    if temperature is not None and not 0 <= temperature <= 2:
        raise InvalidField(("temperature",), "It is from 0 to 2.")
    if top_p is not None and not 0 <= top_p <= 1:
        raise InvalidField(("top_p",), "It is from 0 to 1.")
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise InvalidField((name,), "It is 1 or more.")


def model_parameters(
    top_p: float | None, effort: str | None, verbosity: str | None, summary: str | None = None
) -> dict[str, Any]:
    """Return the parameters for the model. A model that does not take one is not sent it."""
    given = {
        "top_p": top_p,
        "reasoning_effort": effort,
        "verbosity": verbosity,
        "reasoning_summary": summary,
    }
    return {name: value for name, value in given.items() if value is not None}


def parse_tools(tools: Sequence[ToolIn], *, nested: bool = False) -> tuple[ToolSchema, ...]:
    """Return the client's tools. ``nested`` is true for chat completions. Raises InvalidField for a tool that is no
    function, or whose name is not permitted or repeated."""
    schemas: dict[str, ToolSchema] = {}
    for number, tool in enumerate(tools):
        if tool.type != "function":
            raise InvalidField(("tools", number, "type"), "A tool is a function.")
        name: Path = ("function", "name") if nested or tool.function is not None else ("name",)
        at = ("tools", number, *name)
        schema = _tool_schema(tool)
        if not NAME.fullmatch(schema.name):
            raise InvalidField(at, NAME_RULE)
        if schema.name in schemas:
            raise InvalidField(at, "Another tool has this name.")
        schemas[schema.name] = schema
    return tuple(schemas.values())


def _tool_schema(tool: ToolIn) -> ToolSchema:
    function = tool if tool.function is None else tool.function
    return ToolSchema(
        name=function.name or "",
        description=function.description or "",
        parameters=function.parameters or {"type": "object", "properties": {}},
    )


def parse_tool_choice(value: Any, tools: Sequence[ToolSchema]) -> ToolChoice:
    """Return the tool choice, with the names of the client's tools that it permits. Raises InvalidField."""
    names = tuple(tool.name for tool in tools)
    at: Path = ("tool_choice",)
    match value:
        case None | "auto":
            return ToolChoice(tools=names)
        case "none":
            return ToolChoice(mode="none")
        case "required":
            choice = ToolChoice(mode="required", tools=names)
        case {"type": "function"}:
            choice = ToolChoice(mode="required", tools=(_function_name(value),))
            at = (*at, "function", "name") if "function" in value else (*at, "name")
        case {"type": "allowed_tools", "allowed_tools": dict(allowed)}:
            choice, at = _allowed_tools(allowed), (*at, "allowed_tools", "tools")
        case {"type": "allowed_tools"}:
            choice, at = _allowed_tools(value), (*at, "tools")
        case _:
            raise InvalidField(at, TOOL_CHOICE_RULE)
    if not choice.tools or not set(choice.tools) <= set(names):
        raise InvalidField(at, "It names a function of tools.")
    return choice


def _allowed_tools(allowed: Mapping[str, Any]) -> ToolChoice:
    match allowed:
        case {"mode": "auto" | "required" as mode, "tools": list(tools)}:
            return ToolChoice(mode=mode, tools=tuple(dict.fromkeys(map(_function_name, tools))))
    raise InvalidField(("tool_choice",), TOOL_CHOICE_RULE)


def _function_name(tool: object) -> str:
    match tool:
        case {"type": "function", "function": {"name": str(name)}} | {"type": "function", "name": str(name)}:
            return name
    return ""


def permitted_tools(tools: Sequence[ToolSchema], choice: ToolChoice) -> tuple[ToolSchema, ...]:
    """Return the client's tools that the choice permits. Trunkline's own tools are always offered."""
    return tuple(tool for tool in tools if tool.name in choice.tools)


def parse_response_format(
    value: Mapping[str, Any] | None, at: Path, *, nested: bool = False
) -> ResponseFormat | None:
    """Return the response format, None for text. ``at`` is its path in the request; ``nested`` is true for chat
    completions. Raises InvalidField."""
    match value:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return ResponseFormat()
        case {"type": "json_schema"} if nested or "json_schema" in value:
            return _schema_format(value.get("json_schema"), (*at, "json_schema"))
        case {"type": "json_schema"}:
            return _schema_format(value, at)
    raise InvalidField((*at, "type"), "It is text, json_object or json_schema.")


def _schema_format(described: Any, at: Path) -> ResponseFormat:
    match described:
        case {"name": str(name), "schema": dict(schema)}:
            if not NAME.fullmatch(name):
                raise InvalidField((*at, "name"), NAME_RULE)
            if problem := find_schema_problem(schema):
                raise InvalidField((*at, "schema"), f"It is no JSON Schema: {problem}")
            return ResponseFormat(
                name=name,
                description=str(described.get("description") or ""),
                schema=schema,
                strict=described.get("strict") is True,
            )
    raise InvalidField(at, "It has a name and a schema.")
