"""Reads the events of one streamed answer. No I/O."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from trunkline import ToolCall
from trunkline.api.model import (
    Call,
    CallIds,
    Finish,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningBlock,
    ReasoningDone,
    Text,
    Usage,
    model_error,
)
from trunkline_gemini.contents import SIGNATURE, VENDOR, function_name
from trunkline_gemini.errors import from_stream_error

FINISH_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "ESCALATION": "content_filter",
    "PUP_LIMITED_DISABLED": "content_filter",
    "MODEL_ARMOR": "content_filter",
}
"""The finish reason for each ``finishReason``; ``stop`` for any other that is no failure."""

FAILURES = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
        "OTHER",
    }
)
"""The values of ``finishReason`` for an answer that the model could not complete."""

MAX_KEPT = 8_000_000
"""Characters of calls and signatures in one answer, a bound on what a server makes the adapter keep."""


class _GeneratedCall(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    args: dict[str, Any] | None = None


class _GeneratedPart(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _GeneratedCall | None = None


class _GeneratedContent(msgspec.Struct):
    parts: list[_GeneratedPart] | None = None


class _GeneratedCandidate(msgspec.Struct, rename="camel"):
    content: _GeneratedContent | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _GeneratedUsage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _GeneratedEvent(msgspec.Struct, rename="camel"):
    """The part of an event that is read. Servers leave out fields and add some, so nothing is required."""

    candidates: list[_GeneratedCandidate] | None = None
    prompt_feedback: _PromptFeedback | None = None
    usage_metadata: _GeneratedUsage | None = None
    model_version: str | None = None
    error: Any = None


class ContentStreamReader:
    """Reads the events of one answer. ``key`` is taken out of every text that an error would carry."""

    def __init__(self, request: ModelRequest, model: str, key: str) -> None:
        self._ids = CallIds(request)
        self._names = {function_name(tool.name): tool.name for tool in request.tools}
        self._asked = model
        self._model = model
        self._key = key
        self._seen = False
        self._reason = ""
        self._message = ""
        self._usage = Usage()
        self._calls: list[ToolCall] = []
        self._text_chars = len(request.partial)
        self._room = MAX_KEPT

    def feed(self, event: str) -> Iterator[ModelEvent]:
        """Yield the model events of one event of the vendor.

        Raises:
            ModelError: the event reports a failure.
            msgspec.ValidationError: the event does not have the shape that it must have.
            ValueError: the event is not JSON.
        """
        read = _decode(event)
        if read.error:
            raise from_stream_error(read.error, self._key)
        self._seen = True
        self._model = read.model_version or self._model
        if read.usage_metadata:
            self._usage = _converted(read.usage_metadata)
        if read.prompt_feedback and read.prompt_feedback.block_reason:
            self._reason = "SAFETY"
        for candidate in (read.candidates or ())[:1]:
            parts = candidate.content.parts if candidate.content else None
            for part in parts or ():
                yield from self._part(part, len(event))
            self._reason = candidate.finish_reason or self._reason
            self._message = candidate.finish_message or self._message

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the calls and the finish, at the end of the stream.

        Raises:
            ModelError: the stream ended before the answer did, or the model could not complete the answer.
        """
        if not self._reason:
            raise model_error(
                "interrupted" if self._seen else "bad_response",
                "the stream ended before the answer did" if self._seen else "the stream holds no event",
            )
        if self._reason in FAILURES:
            told = f"{self._reason}: {self._message}" if self._message else self._reason
            raise model_error("bad_response", f"the model stopped with {told}".replace(self._key, "[key]"))
        reason = FINISH_REASONS.get(self._reason, "stop")
        yield from (Call(call) for call in self._calls)
        yield Finish(
            reason="tool_calls" if self._calls and reason == "stop" else reason,
            usage=self._usage,
            model=self._model,
        )

    def _part(self, part: _GeneratedPart, size: int) -> Iterator[ModelEvent]:
        signature = part.thought_signature
        if signature or part.function_call:
            self._room -= size
            if self._room < 0:
                raise model_error(
                    "bad_response", f"calls and signatures have more than {MAX_KEPT} characters"
                )
        place: dict[str, Any]
        if part.function_call:
            call = self._call(part.function_call)
            self._calls.append(call)
            place = {"part": "functionCall", "id": call.id}
        elif part.thought:
            if part.text:
                yield Reasoning(part.text)
            place = {"part": "thought", "text": part.text or "", "at": self._text_chars}
        else:
            start = self._text_chars
            if part.text:
                self._text_chars += len(part.text)
                yield Text(part.text)
            place = {"part": "text", "start": start, "end": self._text_chars}
        if signature:
            data = {**place, SIGNATURE: signature}
            yield ReasoningDone(ReasoningBlock(vendor=VENDOR, model=self._asked, data=data))

    def _call(self, given: _GeneratedCall) -> ToolCall:
        name = given.name or ""
        return ToolCall(
            id=self._ids.unique(given.id), name=self._names.get(name, name), arguments=given.args or {}
        )


def _converted(usage: _GeneratedUsage) -> Usage:
    """Return the counts as Trunkline has them. The vendor's tokens of candidates leave out those of thoughts."""
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input_tokens=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output_tokens=(usage.candidates_token_count or 0) + thoughts,
        cached_tokens=usage.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )


_event = msgspec.json.Decoder(_GeneratedEvent)


def _decode(event: str) -> _GeneratedEvent:
    """Decode an event. Some servers send half characters (lone surrogates), which msgspec refuses, or a list."""
    try:
        return _event.decode(event)
    except msgspec.ValidationError:
        if event.lstrip().startswith("["):
            return msgspec.convert({"error": json.loads(event)}, _GeneratedEvent)
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(event), _GeneratedEvent)
