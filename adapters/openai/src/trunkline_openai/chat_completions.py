"""Chat Completions: how a request is put and how its events are read. No I/O in here."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from trunkline import Image, Message, ToolCall
from trunkline.api.model import (
    DocumentFile,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningDone,
    Text,
    Usage,
)
from trunkline.api.tool import ToolSchema
from trunkline_openai.constraints import chat_format, offered_tools, tool_choice
from trunkline_openai.content import data_url, tool_parameters
from trunkline_openai.errors import from_stream_error
from trunkline_openai.parameters import chat_fields, is_reasoning_model, takes_temperature
from trunkline_openai.protocol import AnswerReader, ApiProtocol, decode_event, given_parameters
from trunkline_openai.reasoning_blocks import DetailCollector, chat_block, chat_reasoning
from trunkline_openai.settings import OpenAISettings
from trunkline_openai.tool_calls import CallAssembler, openai_id, openai_name
from trunkline_openai.vendors import OPENAI

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


class _Part(msgspec.Struct):
    """A part of content that is a list, as Mistral's reasoning models send it."""

    type: str = ""
    text: str | None = None
    thinking: "list[_Part] | str | None" = None


class _Delta(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _CompletionUsage(msgspec.Struct):
    """Tokens as servers count them. DeepSeek and Moonshot tell the cached ones in fields of their own."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None


class _CompletionChunk(msgspec.Struct):
    """The part of a chunk that is read. Servers leave out and add what they like, so nothing is required."""

    choices: list[_Choice] | None = None
    usage: _CompletionUsage | None = None
    model: str | None = None
    error: Any = None


_chunk = msgspec.json.Decoder(_CompletionChunk)


class ChatReader(AnswerReader):
    """Reads ``chat.completion.chunk`` events."""

    def __init__(self, request: ModelRequest, model: str, settings: OpenAISettings, key: str) -> None:
        super().__init__(request, model, settings, key)
        self._assembler = CallAssembler()
        self._details = DetailCollector()
        self._reasoning: list[str] = []

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
        text, thought = _content(delta)
        self._details.add(delta.reasoning_details or [])
        if thought:
            self._reasoning.append(thought)
            yield Reasoning(thought)
        if text:
            yield Text(text)
        for piece in delta.tool_calls or ():
            function = piece.function or _Function()
            given = function.arguments
            arguments = json.dumps(given) if isinstance(given, dict) else given
            self._assembler.add(piece.index, piece.id, function.name, arguments)

    def _calls(self) -> list[ToolCall]:
        return self._assembler.calls(self._ids)

    def _blocks(self) -> Iterator[ReasoningDone]:
        vendor, name = self._settings.server, self._settings.vendor_name
        reasoning = "".join(self._reasoning)
        block = chat_block(reasoning, self._details.details, vendor, name, self._requested)
        if block is not None and self._assembler.begun:  # only messages with calls must give it back
            yield ReasoningDone(block)


class ChatCompletions(ApiProtocol):
    """``POST /chat/completions``."""

    path = "/chat/completions"
    reader = ChatReader

    @staticmethod
    def body(request: ModelRequest, model: str, settings: OpenAISettings) -> dict[str, Any]:
        vendor, given = settings.server, given_parameters(request, settings)
        translator = _MessageTranslator(settings, model, thinks=given.get("reasoning_effort") != "none")
        messages = [translator.message(message) for message in request.messages if _has_content(message)]
        if vendor.alternates:
            messages = _merged(messages)
        if request.partial:
            messages.append({"role": "assistant", "content": request.partial})
        body: dict[str, Any] = {"model": model, "messages": messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        if tools := offered_tools(request, vendor):
            body["tools"] = [_tool(tool) for tool in tools]
            if choice := tool_choice(request.tool_choice, vendor, "chat"):
                body["tool_choice"] = choice
        if request.response_format is not None:
            body["response_format"] = chat_format(request.response_format, vendor)
        if request.max_tokens is not None:
            # OpenAI's newer models refuse the old name; other servers know no other.
            newer = vendor is OPENAI or is_reasoning_model(model)
            body["max_completion_tokens" if newer else "max_tokens"] = request.max_tokens
        if request.temperature is not None and takes_temperature(vendor, model, given):
            body["temperature"] = request.temperature
        return {**body, **chat_fields(given, vendor)}


_KNOWN = ("stop", "tool_calls", "max_tokens", "content_filter")


def _usage(usage: _CompletionUsage) -> Usage:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    details = usage.prompt_tokens_details or _PromptDetails()
    reasoning = (usage.completion_tokens_details or _CompletionDetails()).reasoning_tokens or 0
    if reasoning and usage.total_tokens == prompt + completion + reasoning:
        completion += reasoning  # xAI counts reasoning apart
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        cached_tokens=details.cached_tokens or usage.prompt_cache_hit_tokens or usage.cached_tokens or 0,
        reasoning_tokens=reasoning,
        cache_write_tokens=details.cache_write_tokens or 0,
    )


def _content(delta: _Delta) -> tuple[str, str]:
    """The text and the reasoning of a delta, wherever the server puts them."""
    thought = delta.reasoning_content or delta.reasoning or ""
    if not isinstance(delta.content, list):
        return delta.content or delta.refusal or "", thought
    text = "".join(part.text or "" for part in delta.content if part.type != "thinking")
    return text, thought + "".join(_thinking(part) for part in delta.content)


def _thinking(part: _Part) -> str:
    if isinstance(part.thinking, list):
        return "".join(one.text or "" for one in part.thinking)
    return part.thinking or ""


def _has_content(message: Message) -> bool:
    return message.role != "assistant" or bool(message.content or message.tool_calls)


class _MessageTranslator:
    """Puts messages as a server takes them: its ids of calls, and the reasoning that it requires back."""

    def __init__(self, settings: OpenAISettings, model: str, *, thinks: bool) -> None:
        self._vendor = settings.server
        self._name = settings.vendor_name
        self._model = model
        self._thinks = thinks

    def message(self, message: Message) -> dict[str, Any]:
        if message.role == "tool":
            id = self._call_id(message.tool_call_id or "")
            return {"role": "tool", "tool_call_id": id, "content": message.content}
        if message.images or message.documents:
            return {"role": message.role, "content": _parts(message)}
        put: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "assistant":
            put["content"] = message.content or None
            put |= chat_reasoning(message, self._vendor, self._name, self._model, thinks=self._thinks)
        if message.tool_calls:
            put["tool_calls"] = [self._call(call) for call in message.tool_calls]
        return put

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": openai_name(call.name), "arguments": json.dumps(call.arguments)}
        return {"id": self._call_id(call.id), "type": "function", "function": function}

    def _call_id(self, id: str) -> str:
        exact = self._vendor.call_id_chars
        if not exact or re.fullmatch(rf"[a-zA-Z0-9]{{{exact}}}", id):
            return openai_id(id, MAX_ID_CHARS)
        return hashlib.sha256(id.encode()).hexdigest()[:exact]


def _parts(message: Message) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": message.content}] if message.content else []
    return [*text, *map(_image, message.images), *map(_document, message.documents)]


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def _document(document: DocumentFile) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": document.name, "file_data": data_url(document)}}


def _merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join texts of the same role that follow each other: templates of local models refuse them."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        last = merged[-1] if merged else None
        joinable = message["role"] in ("system", "user") and isinstance(message["content"], str)
        if joinable and last and last["role"] == message["role"] and isinstance(last["content"], str):
            merged[-1] = {**last, "content": f"{last['content']}\n\n{message['content']}"}
        else:
            merged.append(message)
    return merged


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool_parameters(tool)}
    return {"type": "function", "function": function}
