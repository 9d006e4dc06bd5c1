"""Responses: how a request is put and how its events are read. No I/O in here.

Nothing is stored on the server (``store`` is false): the conversation lives in memory, and every request carries it.
So a reasoning model sends its reasoning encrypted, and receives it back within the turn. A summary of the reasoning
comes only when it is asked for: ``parameters = { reasoning_summary = "auto" }``.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from trunkline import Message, ToolCall
from trunkline.api.model import (
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningDone,
    Text,
    Usage,
    model_error,
    parse_arguments,
)
from trunkline.api.tool import ToolSchema
from trunkline_openai.constraints import offered_tools, responses_format, tool_choice
from trunkline_openai.content import data_url, tool_parameters
from trunkline_openai.errors import from_stream_error
from trunkline_openai.hosted_tools import CALL_TYPES, included_outputs, tool_ran
from trunkline_openai.parameters import fnmatch_any, responses_fields, takes_temperature
from trunkline_openai.protocol import AnswerReader, ApiProtocol, decode_event, given_parameters
from trunkline_openai.reasoning_blocks import ReasoningItems, item_block, phase_block
from trunkline_openai.settings import OpenAISettings
from trunkline_openai.tool_calls import openai_id, openai_name

MAX_ID_CHARS = 64
"""The largest number of characters in a call id of this protocol."""

ENCRYPTED = "reasoning.encrypted_content"
TEXT_EVENTS = ("response.output_text.delta", "response.refusal.delta")
REASONING_EVENTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
END_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
CUT_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}
COUNTED_FIELDS = (
    "model",
    "input",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "parallel_tool_calls",
    "truncation",
)
"""The fields of a request that the count of its tokens takes."""


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _ResponseUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    model: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: _ResponseUsage | None = None
    incomplete_details: _Incomplete | None = None
    error: Any = None


class _Event(msgspec.Struct):
    """The part of an event that is read."""

    type: str = ""
    delta: Any = None
    summary_index: int = 0
    output_index: int = 0
    item: dict[str, Any] | None = None
    response: _Response | None = None
    error: Any = None


_event = msgspec.json.Decoder(_Event)


class ResponsesReader(AnswerReader):
    """Reads the typed events of a response."""

    def __init__(self, request: ModelRequest, model: str, settings: OpenAISettings, key: str) -> None:
        super().__init__(request, model, settings, key)
        self._items: dict[int, _Item] = {}

    def _read(self, event: str) -> Iterator[ModelEvent]:
        read = decode_event(event, _event)
        if read.error:
            raise from_stream_error(read.error, self._key)
        if not read.type:
            raise model_error("bad_response", "an event has no type")
        if read.type in TEXT_EVENTS:
            yield Text(msgspec.convert(read.delta, str))
        elif read.type in REASONING_EVENTS:
            yield Reasoning(msgspec.convert(read.delta, str))
        elif read.type == "response.reasoning_summary_part.added" and read.summary_index:
            yield Reasoning("\n\n")
        elif read.type == "response.output_item.done" and read.item:
            yield from self._read_item(read.output_index, read.item)
        elif read.type in END_EVENTS:
            yield from self._end(read.type, read.response or _Response())
        elif read.type == "error":
            raise from_stream_error(json.loads(event), self._key)

    def _read_item(self, index: int, given: dict[str, Any]) -> Iterator[ModelEvent]:
        """Take a complete item. Some servers repeat it, or send it only in the last event."""
        if index in self._items:
            return
        item = self._items[index] = msgspec.convert(given, _Item)
        name = self._settings.vendor_name
        if item.type == "reasoning" and given.get("encrypted_content"):
            before = [one.type for at, one in self._items.items() if at < index]
            text, calls = "message" in before, before.count("function_call")
            yield ReasoningDone(item_block(given, name, self._requested, text=text, calls=calls))
        elif item.type == "message" and isinstance(phase := given.get("phase"), str):
            yield ReasoningDone(phase_block(phase, name, self._requested))
        elif item.type in CALL_TYPES:
            yield tool_ran(given, self._ids)

    def _end(self, kind: str, response: _Response) -> Iterator[ModelEvent]:
        if kind in ("response.failed", "response.cancelled"):
            raise from_stream_error(response.error or {"message": "the response failed"}, self._key)
        cut = response.incomplete_details.reason if response.incomplete_details else None
        self._reason = CUT_REASONS.get(cut or "", "stop") if kind == "response.incomplete" else "stop"
        self._model = response.model or self._model
        if response.usage:
            self._usage = _usage(response.usage)
        for index, item in enumerate(response.output or ()):
            yield from self._read_item(index, item)

    def _calls(self) -> list[ToolCall]:
        items = [self._items[index] for index in sorted(self._items)]
        return [self._call(item) for item in items if item.type == "function_call"]

    def _call(self, item: _Item) -> ToolCall:
        given = item.arguments
        arguments = given if isinstance(given, dict) else parse_arguments(given or "")
        return ToolCall(
            id=self._ids.unique(item.call_id or item.id), name=item.name or "", arguments=arguments
        )


class Responses(ApiProtocol):
    """``POST /responses``."""

    path = "/responses"
    reader = ResponsesReader

    @staticmethod
    def body(request: ModelRequest, model: str, settings: OpenAISettings) -> dict[str, Any]:
        vendor, given = settings.server, given_parameters(request, settings)
        name = settings.vendor_name
        items = [item for message in request.messages for item in _items(message, name, model)]
        if request.partial:
            items.append({"role": "assistant", "content": request.partial})
        body: dict[str, Any] = {"model": model, "input": items, "stream": True, "store": False}
        body |= responses_fields(given)
        functions = offered_tools(request, vendor)
        hosted = settings.hosted_tools if request.purpose == "turn" else ()
        if functions or hosted:
            body["tools"] = [*map(_tool, functions), *hosted]
            if functions and (choice := tool_choice(request.tool_choice, vendor, "responses")):
                body["tool_choice"] = choice
        encrypted = [ENCRYPTED] if fnmatch_any(model, vendor.encrypted_models) else []
        if include := [*encrypted, *included_outputs(hosted)]:
            body["include"] = include
        if request.response_format is not None:
            body["text"] = {**body.get("text", {}), "format": responses_format(request.response_format)}
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if request.temperature is not None and takes_temperature(vendor, model, given):
            body["temperature"] = request.temperature
        return body


def counted_body(body: dict[str, Any]) -> dict[str, Any]:
    """The request for the count of a request's input tokens."""
    return {name: body[name] for name in COUNTED_FIELDS if name in body}


def _usage(usage: _ResponseUsage) -> Usage:
    details = usage.input_tokens_details or _InputDetails()
    return Usage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cached_tokens=details.cached_tokens or 0,
        reasoning_tokens=(usage.output_tokens_details or _OutputDetails()).reasoning_tokens or 0,
        cache_write_tokens=details.cache_write_tokens or 0,
    )


def _items(message: Message, vendor: str, model: str) -> Iterator[dict[str, Any]]:
    """An assistant message with calls is several items: its text, then each call, each after its reasoning."""
    if message.role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": openai_id(message.tool_call_id or "", MAX_ID_CHARS),
            "output": message.content,
        }
        return
    reasoning = ReasoningItems(message, vendor, model)
    yield from reasoning.before_text()
    if message.images or message.documents:
        yield {"role": message.role, "content": _parts(message)}
    elif message.content or message.role != "assistant":
        yield {"role": message.role, "content": message.content, **reasoning.phase}
    for number, call in enumerate(message.tool_calls):
        yield from reasoning.before_call(number)
        arguments = json.dumps(call.arguments)
        named = {"call_id": openai_id(call.id, MAX_ID_CHARS), "name": openai_name(call.name)}
        yield {"type": "function_call", **named, "arguments": arguments}


def _parts(message: Message) -> list[dict[str, Any]]:
    text = [{"type": "input_text", "text": message.content}] if message.content else []
    images = [{"type": "input_image", "image_url": data_url(image)} for image in message.images]
    files = [
        {"type": "input_file", "filename": document.name, "file_data": data_url(document)}
        for document in message.documents
    ]
    return [*text, *images, *files]


def _tool(tool: ToolSchema) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description, "parameters": tool_parameters(tool)}
    return {"type": "function", **described, "strict": False}
