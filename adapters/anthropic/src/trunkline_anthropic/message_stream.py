"""Reads the events of one streamed answer. No I/O."""

import json
from collections.abc import Iterator
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
from trunkline_anthropic.errors import from_stream_error
from trunkline_anthropic.message_content import AFTER_CALLS, AFTER_TEXT, VENDOR, tool_name

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "content_filter",
}
"""The finish reason for each ``stop_reason``; ``stop`` for any other."""

CUT_REASONS = ("max_tokens", "content_filter")

MAX_ARGUMENTS = 4_000_000
"""Characters of arguments and thinking in one answer, a bound on what a server makes the adapter keep."""

LAST_EVENT = "message_stop"


class _OutputCounts(msgspec.Struct):
    thinking_tokens: int | None = None


class _MessageUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputCounts | None = None


class _StartedMessage(msgspec.Struct):
    model: str | None = None
    usage: _MessageUsage | None = None


class _ContentBlock(msgspec.Struct):
    type: str = ""
    id: str | None = None
    name: str | None = None
    input: Any = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class _ContentDelta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _StreamEvent(msgspec.Struct):
    """The part of an event that is read. Servers leave out fields and add some, so nothing is required."""

    type: str = ""
    index: int = 0
    message: _StartedMessage | None = None
    content_block: _ContentBlock | None = None
    delta: _ContentDelta | None = None
    usage: _MessageUsage | None = None
    error: Any = None


@dataclass(slots=True)
class _OpenContentBlock:
    """A content block as far as it has arrived."""

    block: _ContentBlock
    pieces: list[str] = field(default_factory=list)
    signature: str = ""
    after_text: int = 0
    after_calls: int = 0
    complete: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        text = "".join(self.pieces)
        if not text.strip() and isinstance(self.block.input, dict):
            return self.block.input
        return parse_arguments(text)


class MessageStreamReader:
    """Reads the events of one answer. ``key`` is taken out of every text that an error would carry."""

    def __init__(self, request: ModelRequest, model: str, key: str) -> None:
        self._ids = CallIds(request)
        self._names = {tool_name(tool.name): tool.name for tool in request.tools}
        self._asked = model
        self._model = model
        self._key = key
        self._seen = False
        self._reason: str | None = None
        self._usage = _MessageUsage()
        self._blocks: dict[int, _OpenContentBlock] = {}
        self._calls: list[_OpenContentBlock] = []
        self._text_chars = len(request.partial)
        self._room = MAX_ARGUMENTS
        self._reasoned = False
        # White space at the end of a partial answer was not sent, so the model may repeat it.
        self._skips_space = request.partial != request.partial.rstrip()

    def feed(self, event: str) -> Iterator[ModelEvent]:
        """Yield the model events of one event of the vendor.

        Raises:
            ModelError: the event reports a failure.
            msgspec.ValidationError: the event does not have the shape that it must have.
            ValueError: the event is not JSON.
        """
        self._seen = True
        read = _decode(event)
        match read.type:
            case "":
                if read.error:
                    raise from_stream_error(read.error, self._key)
                raise model_error("bad_response", "an event has no type")
            case "error":
                raise from_stream_error(read.error or {"message": "the server reports an error"}, self._key)
            case "message_start" if read.message:
                self._model = read.message.model or self._model
                self._count(read.message.usage)
            case "content_block_start" if read.content_block:
                yield from self._begin(read.index, read.content_block)
            case "content_block_delta" if read.delta:
                yield from self._continue(read.index, read.delta)
            case "content_block_stop":
                yield from self._end(read.index)
            case "message_delta":
                self._count(read.usage)
                self._reason = (read.delta and read.delta.stop_reason) or self._reason

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the calls and the finish, at the end of the stream.

        Raises:
            ModelError: the stream ended before the answer did.
        """
        if self._reason is None:
            raise model_error(
                "interrupted" if self._seen else "bad_response",
                "the stream ended before the answer did" if self._seen else "the stream holds no event",
            )
        reason = FINISH_REASONS.get(self._reason, "stop")
        calls = self._finished_calls(cut=reason in CUT_REASONS)
        if reason not in CUT_REASONS:
            reason = "tool_calls" if calls else "stop"
        yield from (Call(call) for call in calls)
        yield Finish(reason=reason, usage=_converted(self._usage), model=self._model)

    def _begin(self, index: int, block: _ContentBlock) -> Iterator[ModelEvent]:
        opened = _OpenContentBlock(block, after_text=self._text_chars, after_calls=len(self._calls))
        opened.signature = block.signature or ""
        self._blocks[index] = opened
        if block.type == "tool_use":
            self._calls.append(opened)
        if block.type == "thinking" and self._reasoned:
            yield Reasoning("\n\n")
        if block.text:
            yield from self._say(block.text)
        if block.thinking:
            yield from self._think(opened, block.thinking)

    def _continue(self, index: int, delta: _ContentDelta) -> Iterator[ModelEvent]:
        opened = self._blocks.get(index)
        if delta.text:
            yield from self._say(delta.text)
        if opened is None:
            return
        if delta.thinking:
            yield from self._think(opened, delta.thinking)
        if delta.partial_json:
            self._keep(opened, delta.partial_json)
        opened.signature += delta.signature or ""

    def _end(self, index: int) -> Iterator[ModelEvent]:
        opened = self._blocks.pop(index, None)
        if opened is None:
            return
        opened.complete = True
        data: dict[str, Any] = {}
        if opened.block.type == "thinking" and opened.signature:
            data = {"type": "thinking", "thinking": "".join(opened.pieces), "signature": opened.signature}
        elif opened.block.type == "redacted_thinking" and opened.block.data:
            data = {"type": "redacted_thinking", "data": opened.block.data}
        if data:
            place = {AFTER_TEXT: opened.after_text, AFTER_CALLS: opened.after_calls}
            data |= {key: count for key, count in place.items() if count}
            yield ReasoningDone(ReasoningBlock(vendor=VENDOR, model=self._asked, data=data))

    def _say(self, text: str) -> Iterator[ModelEvent]:
        if self._skips_space:
            text = text.lstrip()
            self._skips_space = not text
        if text:
            self._text_chars += len(text)
            yield Text(text)

    def _think(self, opened: _OpenContentBlock, text: str) -> Iterator[ModelEvent]:
        self._keep(opened, text)
        self._reasoned = True
        yield Reasoning(text)

    def _keep(self, opened: _OpenContentBlock, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise model_error("bad_response", f"calls and thinking have more than {MAX_ARGUMENTS} characters")
        opened.pieces.append(text)

    def _finished_calls(self, *, cut: bool) -> list[ToolCall]:
        """Return the calls. Of an answer that was cut off the last call may be incomplete, and is left out then."""
        made = self._calls
        if cut and made and not "".join(made[-1].pieces).strip() and not made[-1].block.input:
            made = made[:-1]
        calls = [
            ToolCall(
                id=self._ids.unique(opened.block.id),
                name=self._names.get(opened.block.name or "", opened.block.name or ""),
                arguments=opened.arguments,
            )
            for opened in made
            if opened.complete or not cut
        ]
        return [call for call in calls if is_complete(call)] if cut else calls

    def _count(self, usage: _MessageUsage | None) -> None:
        """Take the counts of an event. Those of a later event include the earlier ones."""
        for name in _MessageUsage.__struct_fields__ if usage else ():
            if (value := getattr(usage, name)) is not None:
                setattr(self._usage, name, value)


def _converted(usage: _MessageUsage) -> Usage:
    """Return the counts as Trunkline has them. The vendor's input tokens leave out those of the cache."""
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(
        input_tokens=(usage.input_tokens or 0) + read + written,
        output_tokens=usage.output_tokens or 0,
        cached_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=(usage.output_tokens_details or _OutputCounts()).thinking_tokens or 0,
    )


_event = msgspec.json.Decoder(_StreamEvent)


def _decode(event: str) -> _StreamEvent:
    """Decode an event. Some servers send half characters (lone surrogates), which msgspec refuses."""
    try:
        return _event.decode(event)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(event), _StreamEvent)
