"""PA's internal contract: the request as it is put, and the events as they are read. No I/O in here."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from trunkline import ErrorCode, Message, ToolCall
from trunkline.api.model import Finish, ModelError, ModelEvent, ModelFault, ModelRequest, Text, ToolRan, Usage
from trunkline.api.text import truncate_words

MAX_DETAIL = 500
FINISH_REASONS = {"tool_calls": "stop", "length": "max_tokens"}
"""Finish reasons that mean another one here: a loop that has run all its tools has stopped."""

_FAULTS: dict[int, ModelFault] = {
    401: "authentication",
    403: "authentication",
    408: "timeout",
    429: "rate_limited",
    504: "timeout",
}


class Event(msgspec.Struct):
    """A server-sent event."""

    kind: str
    data: str


class _TextDelta(msgspec.Struct):
    content: str


class _ToolResult(msgspec.Struct):
    id: str
    output: str | None = None
    error: str | None = None


class _EngineUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Done(msgspec.Struct):
    finish_reason: str = "stop"
    usage: _EngineUsage | None = None


class _ErrorEvent(msgspec.Struct):
    code: str
    message: str = ""


def model_error(fault: ModelFault, detail: str) -> ModelError:
    """A model error with the general code."""
    return ModelError(ErrorCode.PROVIDER_ERROR, fault, truncate_words(detail, MAX_DETAIL))


def request_body(request: ModelRequest) -> dict[str, Any]:
    """The request. Conversation and block go along: the other loop is a part of the platform, no vendor.

    ``tool_calls`` and ``tool_call_id`` are additions, sent only with messages that have them: a loop cannot put an
    earlier tool result before a model without knowing its call. One that does not know them passes them over.
    """
    metadata: dict[str, Any] = {
        "correlation_id": request.turn or f"req_{uuid.uuid4().hex}",
        "trigger": "message",
    }
    if request.conversation:
        metadata["conversation_id"] = request.conversation
    if request.block:
        metadata["client_context"] = {"block": request.block}
    messages = [_message(m) for m in request.messages if m.content or m.tool_calls or m.role != "assistant"]
    return {"messages": messages, "metadata": metadata}


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = msgspec.to_builtins(message.tool_calls)
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    return said


def from_status(status: int, content: bytes) -> ModelError:
    """The error of an answer that is no stream."""
    try:
        said = msgspec.json.decode(content, type=_ErrorEvent)
    except msgspec.MsgspecError:
        said = _ErrorEvent(code="", message="the body does not match the contract")
    detail = f"HTTP {status} {said.code}: {said.message}"
    if said.code == ErrorCode.CONTEXT_OVERFLOW:
        return ModelError(ErrorCode.CONTEXT_OVERFLOW, "refused", truncate_words(detail, MAX_DETAIL))
    if status < 400:
        return model_error("bad_response", detail)
    return model_error(_FAULTS.get(status, "unavailable" if status >= 500 else "refused"), detail)


class EventReader:
    """Reads the events of one answer."""

    def __init__(self) -> None:
        self._open: dict[str, ToolCall] = {}
        self._seen = False
        self._done = False

    def feed(self, event: Event) -> Iterator[ModelEvent]:
        """Yield the model events of one event. Unknown kinds of events are ignored.

        Raises:
            ModelError: the event reports a failure, or cannot be read.
        """
        self._seen = True
        try:
            yield from self._read(event)
        except msgspec.MsgspecError as error:
            raise model_error("bad_response", f"a {event.kind} event cannot be read: {error}") from None

    def finish(self) -> None:
        """Look whether the answer is complete.

        Raises:
            ModelError: it is not.
        """
        if not self._done and self._seen:
            raise model_error("interrupted", "the stream ended before the answer did")
        if not self._done:
            raise model_error("bad_response", "the stream holds no event")

    @property
    def done(self) -> bool:
        """Report whether the answer is complete."""
        return self._done

    def _read(self, event: Event) -> Iterator[ModelEvent]:
        match event.kind:
            case "text-delta":
                yield Text(msgspec.json.decode(event.data, type=_TextDelta).content)
            case "tool-call":
                call = msgspec.json.decode(event.data, type=ToolCall)
                self._open[call.id] = call
            case "tool-result":
                yield self._tool_ran(msgspec.json.decode(event.data, type=_ToolResult))
            case "done":
                yield from self._end(msgspec.json.decode(event.data, type=_Done))
            case "error":
                raise _error_from_event(msgspec.json.decode(event.data, type=_ErrorEvent))

    def _tool_ran(self, result: _ToolResult) -> ToolRan:
        call = self._open.pop(result.id, None)
        if call is None:
            raise model_error("bad_response", "a tool-result has no tool-call")
        failed = result.error is not None
        return ToolRan(call, (result.error if failed else result.output) or "", error=failed)

    def _end(self, done: _Done) -> Iterator[ModelEvent]:
        for call in self._open.values():
            yield ToolRan(call, "The loop reported no result.", error=True)
        self._done = True
        usage = done.usage or _EngineUsage()
        yield Finish(
            reason=FINISH_REASONS.get(done.finish_reason, done.finish_reason),
            usage=Usage(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens),
            model="engine",
        )


def _error_from_event(event: _ErrorEvent) -> ModelError:
    """The codes that the contract knows go on as they are; every other is the provider's failure."""
    detail = truncate_words(f"{event.code}: {event.message}", MAX_DETAIL)
    if event.code in (ErrorCode.CONTEXT_OVERFLOW, ErrorCode.TOOL_ERROR):
        return ModelError(ErrorCode(event.code), "refused", detail)
    return model_error("unavailable", detail)
