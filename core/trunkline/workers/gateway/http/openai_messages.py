"""Conversion between OpenAI's transcripts and Trunkline's messages. Pure. Unsupported content is refused."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trunkline._util.json_schema import find_schema_problem
from trunkline.contracts.conversations.messages import RAW_ARGUMENTS, Message, Role, ToolCall, Usage
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.constraints import ResponseFormat, ToolChoice
from trunkline.contracts.tools.messages import ToolSchema
from trunkline.contracts.turns.messages import FinishReason
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.openai_schemas import (
    CallOut,
    ChatRequest,
    CompletionDetails,
    FunctionOut,
    MessageIn,
    PromptDetails,
    ToolIn,
    UsageOut,
)
from trunkline_bus import new_id

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAME_RULE = "A name has 1 to 64 letters, digits, _ and -."
TOOL_CHOICE_RULE = "It is auto, none, required, a function, or allowed_tools."

FINISH_REASONS: dict[FinishReason, str] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "cancelled": "stop",
    "stopped": "stop",
    "error": "stop",
}


def split_transcript(chat: ChatRequest) -> tuple[list[Message], list[Message]]:
    """Return the messages up to the last answer, and those after it. Raises InvalidField for a transcript
    that ends with neither a user message nor a tool result."""
    if not chat.messages:
        raise InvalidField(("messages",), "There is no message.")
    messages = [_message(one, number) for number, one in enumerate(chat.messages)]
    if messages[-1].role not in ("user", "tool"):
        raise InvalidField(
            ("messages", len(messages) - 1, "role"), "The last message is the user's or a tool's."
        )
    if messages[-1].role == "user" and not messages[-1].content.strip():
        raise InvalidField(("messages", len(messages) - 1, "content"), "The message has no content.")
    answers = [number for number, message in enumerate(messages, start=1) if message.role == "assistant"]
    at = max(answers, default=0)
    return messages[:at], messages[at:]


def to_message(chat: ChatRequest, messages: Sequence[Message]) -> SendMessage:
    """Return the messages since the last answer as one message. The caller handles the history before it."""
    _check(chat)
    choice = parse_tool_choice(chat)
    block, _, model = chat.model.partition(":")
    words = messages[-1].role == "user"
    return SendMessage(
        content=messages[-1].content if words else "",
        block=block or None,
        preceding=tuple(messages[:-1] if words else messages),
        client_tools=_client_tools(chat, choice),
        model=model or None,
        max_tokens=chat.max_completion_tokens or chat.max_tokens,
        temperature=chat.temperature,
        tool_choice=choice if choice.mode == "required" else None,
        response_format=parse_response_format(chat.response_format),
    )


def _check(chat: ChatRequest) -> None:
    if chat.n not in (None, 1):
        raise InvalidField(("n",), "There is one choice: it is 1.")
    if chat.temperature is not None and not 0 <= chat.temperature <= 2:
        raise InvalidField(("temperature",), "It is from 0 to 2.")
    for name, limit in (
        ("max_tokens", chat.max_tokens),
        ("max_completion_tokens", chat.max_completion_tokens),
    ):
        if limit is not None and limit < 1:
            raise InvalidField((name,), "It is 1 or more.")


def _message(message: MessageIn, number: int) -> Message:
    role: Role = "system" if message.role == "developer" else message.role
    if role == "tool" and not message.tool_call_id:
        raise InvalidField(("messages", number, "tool_call_id"), "A tool's message names the call.")
    return Message(
        id=new_id("msg"),
        role=role,
        content=_content(message, number),
        name=message.name,
        tool_call_id=message.tool_call_id if role == "tool" else None,
        derived=False if role == "tool" else None,  # a client's tool does not read Trunkline's memory
        tool_calls=tuple(
            ToolCall(id=call.id, name=call.function.name, arguments=_arguments(call.function.arguments))
            for call in message.tool_calls or ()
        ),
    )


def _content(message: MessageIn, number: int) -> str:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    for at, part in enumerate(message.content):
        if part.type != "text":
            raise InvalidField(("messages", number, "content", at, "type"), "Only text is understood.")
    return "".join(part.text for part in message.content)


def _arguments(text: str) -> dict[str, object]:
    """Parse arguments as an adapter does: text that is no JSON object is kept as ``RAW_ARGUMENTS``."""
    try:
        arguments = msgspec.json.decode(text.strip() or "{}", type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return {RAW_ARGUMENTS: text}
    return {RAW_ARGUMENTS: text} if RAW_ARGUMENTS in arguments else arguments


def parse_tool_choice(chat: ChatRequest) -> ToolChoice:
    """Return the tool choice, with the names of the client's tools that it permits. Raises InvalidField."""
    names = tuple(tool.function.name for tool in _functions(chat.tools or ()) if tool.function is not None)
    at: tuple[str, ...]
    match chat.tool_choice:
        case None | "auto":
            return ToolChoice(tools=names)
        case "none":
            return ToolChoice(mode="none")
        case "required":
            choice, at = ToolChoice(mode="required", tools=names), ("tool_choice",)
        case {"type": "function", "function": {"name": str(name)}}:
            choice, at = ToolChoice(mode="required", tools=(name,)), ("tool_choice", "function", "name")
        case {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto" | "required" as mode, "tools": list(tools)},
        }:
            chosen = tuple(map(_allowed_name, tools))
            choice, at = ToolChoice(mode=mode, tools=chosen), ("tool_choice", "allowed_tools", "tools")
        case _:
            raise InvalidField(("tool_choice",), TOOL_CHOICE_RULE)
    if not choice.tools or not set(choice.tools) <= set(names):
        raise InvalidField(at, "It names a function of tools.")
    return choice


def _allowed_name(tool: object) -> str:
    match tool:
        case {"type": "function", "function": {"name": str(name)}}:
            return name
    return ""


def parse_response_format(value: Mapping[str, Any] | None) -> ResponseFormat | None:
    """Return the response format, None for text. Raises InvalidField."""
    match value:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return ResponseFormat()
        case {"type": "json_schema", "json_schema": {"name": str(name), "schema": dict(schema)} as described}:
            if not NAME.fullmatch(name):
                raise InvalidField(("response_format", "json_schema", "name"), NAME_RULE)
            if problem := find_schema_problem(schema):
                raise InvalidField(
                    ("response_format", "json_schema", "schema"), f"It is no JSON Schema: {problem}"
                )
            return ResponseFormat(
                name=name,
                description=str(described.get("description") or ""),
                schema=schema,
                strict=described.get("strict") is True,
            )
        case {"type": "json_schema"}:
            raise InvalidField(("response_format", "json_schema"), "It has a name and a schema.")
    raise InvalidField(("response_format", "type"), "It is text, json_object or json_schema.")


def _client_tools(chat: ChatRequest, choice: ToolChoice) -> tuple[ToolSchema, ...]:
    """Return the client's tools that the choice permits. Trunkline's own tools are always offered."""
    tools = map(_tool, _functions(chat.tools or ()))
    return tuple(tool for tool in tools if tool.name in choice.tools)


def _functions(tools: Sequence[ToolIn]) -> Sequence[ToolIn]:
    names: set[str] = set()
    for number, tool in enumerate(tools):
        if tool.type != "function":
            raise InvalidField(("tools", number, "type"), "A tool is a function.")
        if tool.function is None or not NAME.fullmatch(tool.function.name):
            raise InvalidField(("tools", number, "function", "name"), NAME_RULE)
        if tool.function.name in names:
            raise InvalidField(("tools", number, "function", "name"), "Another tool has this name.")
        names.add(tool.function.name)
    return tools


def _tool(tool: ToolIn) -> ToolSchema:
    assert tool.function is not None
    return ToolSchema(
        name=tool.function.name,
        description=tool.function.description or "",
        parameters=tool.function.parameters or {"type": "object", "properties": {}},
    )


def call_out(call: ToolCall, index: int | None) -> CallOut:
    """Return a call for the client to run. Arguments that are no JSON object are sent as the model wrote
    them."""
    written = call.arguments.get(RAW_ARGUMENTS) if len(call.arguments) == 1 else None
    arguments = written if isinstance(written, str) else msgspec.json.encode(call.arguments).decode()
    return CallOut(
        id=call.id, type="function", index=index, function=FunctionOut(name=call.name, arguments=arguments)
    )


def usage_out(usage: Usage) -> UsageOut:
    """Return the token counts under OpenAI's names."""
    return UsageOut(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        prompt_tokens_details=PromptDetails(cached_tokens=usage.cached_tokens),
        completion_tokens_details=CompletionDetails(reasoning_tokens=usage.reasoning_tokens),
    )
