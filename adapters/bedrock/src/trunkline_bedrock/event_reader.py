"""Reads the events of one answer of ConverseStream, or the whole answer of Converse. No I/O."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    is_complete,
    model_error,
    parse_arguments,
)
from trunkline_bedrock.message_content import AFTER_CALLS, AFTER_TEXT, VENDOR, tool_name

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
"""The finish reason for each ``stopReason``; ``stop`` for any other."""

BROKEN_REASONS = ("malformed_model_output", "malformed_tool_use")
CUT_REASONS = ("max_tokens", "content_filter")

MAX_CHARS = 4_000_000
"""Characters of arguments and reasoning in one answer, a bound on what a server makes the adapter keep."""


class _ToolStart(msgspec.Struct, rename="camel"):
    tool_use_id: str
    name: str


class _Start(msgspec.Struct, rename="camel"):
    tool_use: _ToolStart | None = None


class _BlockStart(msgspec.Struct, rename="camel"):
    start: _Start
    content_block_index: int


class _ToolDelta(msgspec.Struct):
    input: Any = ""


class _ReasoningDelta(msgspec.Struct, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: bytes | None = None


class _BlockContent(msgspec.Struct, rename="camel"):
    text: str | None = None
    tool_use: _ToolDelta | None = None
    reasoning_content: _ReasoningDelta | None = None


class _BlockDelta(msgspec.Struct, rename="camel"):
    delta: _BlockContent
    content_block_index: int


class _BlockStop(msgspec.Struct, rename="camel"):
    content_block_index: int


class _MessageStop(msgspec.Struct, rename="camel"):
    stop_reason: str


class _TokenUsage(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0


class _AnswerMetadata(msgspec.Struct):
    usage: _TokenUsage | None = None


class _ConverseEvent(msgspec.Struct, rename="camel"):
    """An event as botocore returns it. Events that the adapter does not know are ignored."""

    content_block_start: _BlockStart | None = None
    content_block_delta: _BlockDelta | None = None
    content_block_stop: _BlockStop | None = None
    message_stop: _MessageStop | None = None
    metadata: _AnswerMetadata | None = None


@dataclass(slots=True)
class _OpenBlock:
    """A content block as far as it has arrived."""

    after_text: int
    after_calls: int
    tool: _ToolStart | None = None
    pieces: list[str] = field(default_factory=list)
    signature: str = ""
    redacted: bytes = b""
    reasons: bool = False
    complete: bool = False


class ConverseReader:
    """Reads the events of one answer."""

    def __init__(self, request: ModelRequest, model: str) -> None:
        self._ids = CallIds(request)
        self._names = {tool_name(tool.name): tool.name for tool in request.tools}
        self._model = model
        self._seen = False
        self._reason: str | None = None
        self._usage = _TokenUsage()
        self._blocks: dict[int, _OpenBlock] = {}
        self._calls: list[_OpenBlock] = []
        self._text_chars = 0
        self._reasoned = False
        self._room = MAX_CHARS
        # A final assistant message is sent without the white space at its end; the model may write it again.
        self._skips_space = request.partial != request.partial.rstrip()

    def feed(self, event: Mapping[str, Any]) -> Iterator[ModelEvent]:
        """Read one event. Raises msgspec.ValidationError if it has not the vendor's form."""
        read = msgspec.convert(event, _ConverseEvent)
        self._seen = True
        if read.content_block_start is not None:
            self._begin(read.content_block_start)
        if read.content_block_delta is not None:
            yield from self._continue(read.content_block_delta)
        if read.content_block_stop is not None:
            yield from self._end(read.content_block_stop.content_block_index)
        if read.message_stop is not None:
            self._reason = read.message_stop.stop_reason
        if read.metadata is not None and read.metadata.usage is not None:
            self._usage = read.metadata.usage

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the calls and the end after the last event."""
        if self._reason is None and not self._seen:
            raise model_error("bad_response", "the answer has no event")
        if self._reason is None:
            raise model_error("interrupted", "the answer ended without a stop reason")
        if self._reason in BROKEN_REASONS:
            raise model_error("bad_response", f"the model's answer is unusable: {self._reason}")
        reason = FINISH_REASONS.get(self._reason, "stop")
        calls = self._finished_calls(cut=reason in CUT_REASONS)
        if reason not in CUT_REASONS:
            reason = "tool_calls" if calls else "stop"
        yield from (Call(call) for call in calls)
        yield Finish(reason=reason, usage=_converted(self._usage), model=self._model)

    def _begin(self, start: _BlockStart) -> None:
        opened = self._open(start.content_block_index)
        opened.tool = start.start.tool_use
        if opened.tool is not None:
            self._calls.append(opened)

    def _open(self, index: int) -> _OpenBlock:
        """Return the block. Only calls have an event for their beginning."""
        if index not in self._blocks:
            self._blocks[index] = _OpenBlock(after_text=self._text_chars, after_calls=len(self._calls))
        return self._blocks[index]

    def _continue(self, event: _BlockDelta) -> Iterator[ModelEvent]:
        opened, delta = self._open(event.content_block_index), event.delta
        if delta.text:
            yield from self._say(delta.text)
        if delta.tool_use is not None and isinstance(delta.tool_use.input, str):
            self._keep(opened, delta.tool_use.input)
        if delta.reasoning_content is not None:
            yield from self._think(opened, delta.reasoning_content)

    def _think(self, opened: _OpenBlock, delta: _ReasoningDelta) -> Iterator[ModelEvent]:
        if not opened.reasons and self._reasoned and delta.text:
            yield Reasoning("\n\n")
        opened.reasons = True
        if delta.text:
            self._reasoned = True
            self._keep(opened, delta.text)
            yield Reasoning(delta.text)
        opened.signature += delta.signature or ""
        opened.redacted += delta.redacted_content or b""

    def _end(self, index: int) -> Iterator[ModelEvent]:
        opened = self._blocks.pop(index, None)
        if opened is None:
            return
        opened.complete = True
        data: dict[str, Any] = {}
        if opened.redacted:
            data = {"redactedContent": base64.b64encode(opened.redacted).decode()}
        elif opened.signature:
            text = "".join(opened.pieces)
            data = {"reasoningText": {"text": text, "signature": opened.signature}}
        if data:
            place = {AFTER_TEXT: opened.after_text, AFTER_CALLS: opened.after_calls}
            data |= {key: count for key, count in place.items() if count}
            yield ReasoningDone(ReasoningBlock(vendor=VENDOR, model=self._model, data=data))

    def _say(self, text: str) -> Iterator[ModelEvent]:
        if self._skips_space:
            text = text.lstrip()
            self._skips_space = not text
        if text:
            self._text_chars += len(text)
            yield Text(text)

    def _keep(self, opened: _OpenBlock, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise model_error("bad_response", f"calls and reasoning have more than {MAX_CHARS} characters")
        opened.pieces.append(text)

    def _finished_calls(self, *, cut: bool) -> list[ToolCall]:
        """Return the calls. Of an answer that was cut off the last call may be incomplete, and is left out then."""
        made = self._calls
        if cut and made and not "".join(made[-1].pieces).strip():
            made = made[:-1]
        calls = [
            ToolCall(
                id=self._ids.unique(opened.tool.tool_use_id),
                name=self._names.get(opened.tool.name, opened.tool.name),
                arguments=parse_arguments("".join(opened.pieces)),
            )
            for opened in made
            if opened.tool is not None and (opened.complete or not cut)
        ]
        return [call for call in calls if is_complete(call)] if cut else calls


def events_of(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a whole answer of Converse as the events of ConverseStream."""
    message = answer.get("output", {}).get("message", {})
    for index, block in enumerate(message.get("content", ())):
        at = {"contentBlockIndex": index}
        for delta in _deltas(block):
            if "start" in delta:
                yield {"contentBlockStart": {**delta, **at}}
            else:
                yield {"contentBlockDelta": {"delta": delta, **at}}
        yield {"contentBlockStop": at}
    if "stopReason" in answer:
        yield {"messageStop": {"stopReason": answer["stopReason"]}}
    yield {"metadata": {"usage": answer.get("usage", {})}}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if "text" in block:
        yield {"text": block["text"]}
    if "toolUse" in block:
        call = block["toolUse"]
        yield {"start": {"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}}}
        yield {"toolUse": {"input": msgspec.json.encode(call.get("input", {})).decode()}}
    if "reasoningContent" in block:
        reasoning = block["reasoningContent"]
        yield {"reasoningContent": reasoning.get("reasoningText", reasoning)}


def _converted(usage: _TokenUsage) -> Usage:
    """Return the counts as Trunkline has them. The vendor's input tokens leave out those of the cache."""
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    return Usage(
        input_tokens=usage.input_tokens + read + written,
        output_tokens=usage.output_tokens,
        cached_tokens=read,
        cache_write_tokens=written,
    )
