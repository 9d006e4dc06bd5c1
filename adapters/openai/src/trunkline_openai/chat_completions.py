"""Chat Completions: how a request is put and how its events are read. No I/O in here."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from trunkline import Image, Message, ToolCall
from trunkline.api.model import ModelEvent, ModelRequest, Reasoning, Text, Usage
from trunkline.api.tool import ToolSchema
from trunkline_openai.errors import from_stream_error
from trunkline_openai.protocol import AnswerReader, ApiProtocol, decode_event
from trunkline_openai.settings import OpenAISettings
from trunkline_openai.tool_calls import CallAssembler, openai_id, openai_name

MAX_ID_CHARS = 40
"""The largest number of characters in a call id of this protocol."""

FINISH_REASONS = {"length": "max_tokens", "tool_calls": "tool_calls", "function_call": "tool_calls"}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _CompletionUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _CompletionChunk(msgspec.Struct):
    """The part of a chunk that is read. Servers leave out and add what they like, so nothing is required."""

    choices: list[_Choice] | None = None
    usage: _CompletionUsage | None = None
    model: str | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_CompletionChunk)


class ChatReader(AnswerReader):
    """Reads ``chat.completion.chunk`` events."""

    def __init__(self, request: ModelRequest, model: str, key: str) -> None:
        super().__init__(request, model, key)
        self._assembler = CallAssembler()

    def _read(self, event: str) -> Iterator[ModelEvent]:
        chunk = decode_event(event, _chunk)
        if chunk.error:
            raise from_stream_error(chunk.error, self._key)
        self._model = chunk.model or self._model
        if chunk.usage:
            self._usage = _usage(chunk.usage)
        for choice in (chunk.choices or [])[:1]:
            yield from self._read_delta(choice.delta or _Delta())
            if choice.finish_reason:
                self._reason = FINISH_REASONS.get(choice.finish_reason, choice.finish_reason)
                self._reason = self._reason if self._reason in _KNOWN else "stop"

    def _read_delta(self, delta: _Delta) -> Iterator[ModelEvent]:
        if thought := delta.reasoning_content or delta.reasoning:
            yield Reasoning(thought)
        if text := delta.content or delta.refusal:
            yield Text(text)
        for piece in delta.tool_calls or ():
            function = piece.function or _Function()
            given = function.arguments
            arguments = json.dumps(given) if isinstance(given, dict) else given
            self._assembler.add(piece.index, piece.id, function.name, arguments)

    def _calls(self) -> list[ToolCall]:
        return self._assembler.calls(self._ids)


class ChatCompletions(ApiProtocol):
    """``POST /chat/completions``."""

    path = "/chat/completions"
    reader = ChatReader

    @staticmethod
    def body(request: ModelRequest, model: str, settings: OpenAISettings) -> dict[str, Any]:
        messages = [_message(message) for message in request.messages if _has_content(message)]
        if request.partial:
            messages.append({"role": "assistant", "content": request.partial})
        body: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.max_tokens is not None:
            # OpenAI's newer models refuse the old name; other servers know no other.
            body["max_completion_tokens" if settings.base_url is None else "max_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body


_KNOWN = ("stop", "tool_calls", "max_tokens", "content_filter")


def _usage(usage: _CompletionUsage) -> Usage:
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=(usage.prompt_tokens_details or _PromptDetails()).cached_tokens or 0,
        reasoning_tokens=(usage.completion_tokens_details or _CompletionDetails()).reasoning_tokens or 0,
    )


def _has_content(message: Message) -> bool:
    return message.role != "assistant" or bool(message.content or message.tool_calls)


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        id = openai_id(message.tool_call_id or "", MAX_ID_CHARS)
        return {"role": "tool", "tool_call_id": id, "content": message.content}
    if message.images:
        text = {"type": "text", "text": message.content}
        return {"role": message.role, "content": [text, *map(_image, message.images)]}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "id": openai_id(call.id, MAX_ID_CHARS),
            "type": "function",
            "function": {"name": openai_name(call.name), "arguments": json.dumps(call.arguments)},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content or None, "tool_calls": calls}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def data_url(image: Image) -> str:
    """The picture as an address that holds it."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool_parameters(tool)}
    return {"type": "function", "function": function}


def tool_parameters(tool: ToolSchema) -> dict[str, Any]:
    """The tool's JSON schema; a tool without parameters needs an empty one."""
    return tool.parameters or {"type": "object", "properties": {}}
