"""Translates a request to the body of ``POST /api/chat``. Pure functions."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trunkline import Message
from trunkline.api.model import ModelRequest
from trunkline.api.tool import ToolSchema
from trunkline_ollama.settings import OPTIONS, OllamaSettings

VENDOR = "ollama"

THINKING = "thinking"
"""The key of the thinking in a ``ReasoningBlock`` and in the vendor's messages."""

THINK_VALUES = {"none": False, "on": True}
"""``think`` for each ``reasoning_effort`` that is no level of the vendor."""

OPTION_NAMES = frozenset(option.name for option in OPTIONS)


def chat_body(request: ModelRequest, model: str, settings: OllamaSettings) -> dict[str, Any]:
    """Return the body of the request."""
    tools = offered_tools(request)
    parameters = {**settings.parameters, **_limits(request), **request.parameters}
    cuts = bool(parameters.get("truncate", False))
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, tools),
        "stream": True,
        # Without these the server drops the oldest messages without a word.
        "truncate": cuts,
        "shift": cuts,
    }
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if request.response_format is not None:
        body["format"] = request.response_format.schema or "json"
    if (effort := parameters.get("reasoning_effort")) is not None:
        body["think"] = THINK_VALUES.get(effort, effort)
    body |= keep_alive(parameters)
    if options := {name: value for name, value in parameters.items() if name in OPTION_NAMES}:
        body["options"] = options
    return _with_extra(body, settings.extra_body)


def offered_tools(request: ModelRequest) -> tuple[ToolSchema, ...]:
    """Return the tools that the request offers. The vendor has no ``tool_choice``, so a choice is made by what is
    offered: none, all, or the named tools.
    """
    choice = request.tool_choice
    if choice.mode == "none":
        return ()
    return tuple(tool for tool in request.tools if not choice.tools or tool.name in choice.tools)


def keep_alive(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field ``keep_alive``, if it is set. The server reads a number without a unit as a number only."""
    given = parameters.get("keep_alive")
    if given is None:
        return {}
    return {"keep_alive": int(given) if re.fullmatch(r"-?\d+", given) else given}


def _limits(request: ModelRequest) -> dict[str, Any]:
    given = {"num_predict": request.max_tokens, "temperature": request.temperature}
    return {name: value for name, value in given.items() if value is not None}


def _with_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with the fields of ``extra_body``. Its options are added to those of the request."""
    options = {**body.get("options", {}), **extra.get("options", {})}
    return {**body, **extra, **({"options": options} if options else {})}


# Messages ----------------------------------------------------------------------------------------------------


def _messages(request: ModelRequest, tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    begin = next(
        (number for number, message in enumerate(request.messages) if message.role != "system"),
        len(request.messages),
    )
    system = [message.content for message in request.messages[:begin] if message.content]
    sent = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    sent += _merged(_translated(request.messages[begin:]))
    if request.partial:
        sent.append({"role": "assistant", "content": request.partial})
    return sent


def _translated(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    """Yield the messages after the first system messages. A later system message becomes the user's, because templates
    of models refuse it or move it to the beginning.
    """
    names: dict[str | None, str] = {}
    for message in messages:
        match message.role:
            case "tool":
                name = message.name or names.get(message.tool_call_id) or "unnamed"
                answered = {"tool_call_id": message.tool_call_id} if message.tool_call_id else {}
                yield {"role": "tool", "content": message.content, "tool_name": name, **answered}
            case "assistant":
                names |= {call.id: call.name for call in message.tool_calls}
                if message.content or message.tool_calls:
                    yield _assistant(message)
            case "system":
                yield {"role": "user", "content": f"<system>\n{message.content}\n</system>"}
            case "user":
                images = [base64.b64encode(image.data).decode() for image in message.images]
                yield {"role": "user", "content": message.content, **({"images": images} if images else {})}


def _assistant(message: Message) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": "assistant", "content": message.content}
    thinking = "".join(
        str(block.data.get(THINKING, "")) for block in message.reasoning if block.vendor == VENDOR
    )
    if thinking:
        sent[THINKING] = thinking
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                **({"id": call.id} if call.id else {}),
                "function": {"index": number, "name": call.name or "unnamed", "arguments": call.arguments},
            }
            for number, call in enumerate(message.tool_calls)
        ]
    return sent


def _merged(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with consecutive ones of one role joined, as the server's own templates join them: many
    templates of models refuse roles that do not alternate. Tool results and messages with calls stay as they are.
    """
    merged: list[dict[str, Any]] = []
    for message in messages:
        last = merged[-1] if merged else {}
        if message["role"] != last.get("role") or message["role"] == "tool" or "tool_calls" in last:
            merged.append(message)
            continue
        texts = [text for text in (last["content"], message["content"]) if text]
        merged[-1] = {**last, **message, "content": "\n\n".join(texts)}
        if images := [*last.get("images", ()), *message.get("images", ())]:
            merged[-1]["images"] = images
        if thinking := last.get(THINKING, "") + message.get(THINKING, ""):
            merged[-1][THINKING] = thinking
    return merged


# Tools and formats -------------------------------------------------------------------------------------------


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": _schema(tool.parameters)}
    return {"type": "function", "function": function}


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool's schema. The server requires ``properties``, each of them an object: ``true`` becomes ``{}``."""
    given = parameters.get("properties")
    properties = given if isinstance(given, dict) else {}
    described = {name: value if isinstance(value, dict) else {} for name, value in properties.items()}
    return {"type": "object", **parameters, "properties": described}
