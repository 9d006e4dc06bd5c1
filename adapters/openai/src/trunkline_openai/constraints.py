"""Which tools a request offers, which calls it demands, and the form of the answer. No I/O in here."""

from typing import Any

from trunkline.api.model import ModelRequest, ResponseFormat, ToolChoice
from trunkline.api.tool import ToolSchema
from trunkline_openai.parameters import fnmatch_any
from trunkline_openai.vendors import Protocol, Vendor

MODELS_WITHOUT_SCHEMAS = ("gpt-3.5*", "gpt-4", "gpt-4-*")


def offered_tools(request: ModelRequest, vendor: Vendor) -> tuple[ToolSchema, ...]:
    """Return the tools to send. A server that knows no list of permitted tools receives only these."""
    choice = request.tool_choice
    if vendor.tool_choice == "absent" and choice.mode == "none":
        return ()
    if choice.tools and choice.mode != "none" and vendor.tool_choice != "full":
        return tuple(tool for tool in request.tools if tool.name in choice.tools)
    return request.tools


def tool_choice(choice: ToolChoice, vendor: Vendor, protocol: Protocol) -> Any:
    """Return the value of ``tool_choice``, None to leave it out."""
    if vendor.tool_choice == "absent" or (choice.mode == "auto" and not choice.tools):
        return None
    if choice.mode == "none" or not choice.tools:
        return choice.mode
    if vendor.tool_choice == "text":
        return None if choice.mode == "auto" else choice.mode
    tools = [_tool(name, protocol) for name in choice.tools]
    if choice.mode == "required" and len(tools) == 1:
        return tools[0]
    allowed = {"mode": choice.mode, "tools": tools}
    if protocol == "chat":
        return {"type": "allowed_tools", "allowed_tools": allowed}
    return {"type": "allowed_tools", **allowed}


def is_enforceable(request: ModelRequest, model: str) -> bool:
    """Report whether OpenAI's protocol can enforce the format of this request.

    OpenAI's models before gpt-4o know no schemas. For any object, the messages must contain the word JSON.
    """
    wanted = request.response_format
    if wanted is None or wanted.schema is not None:
        return not fnmatch_any(model, MODELS_WITHOUT_SCHEMAS)
    return any("json" in message.content.lower() for message in request.messages)


def chat_format(response_format: ResponseFormat, vendor: Vendor) -> dict[str, Any]:
    """Return the value of ``response_format`` of Chat Completions."""
    if response_format.schema is not None:
        return {"type": "json_schema", "json_schema": _schema(response_format)}
    if vendor.json_object:
        return {"type": "json_object"}
    anything = {"name": response_format.name, "schema": {"type": "object"}, "strict": False}
    return {"type": "json_schema", "json_schema": anything}


def responses_format(response_format: ResponseFormat) -> dict[str, Any]:
    """Return the value of ``text.format`` of Responses."""
    if response_format.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", **_schema(response_format)}


def _tool(name: str, protocol: Protocol) -> dict[str, Any]:
    if protocol == "chat":
        return {"type": "function", "function": {"name": name}}
    return {"type": "function", "name": name}


def _schema(response_format: ResponseFormat) -> dict[str, Any]:
    described = {"description": response_format.description} if response_format.description else {}
    return {
        "name": response_format.name,
        **described,
        "schema": response_format.schema,
        "strict": response_format.strict,
    }
