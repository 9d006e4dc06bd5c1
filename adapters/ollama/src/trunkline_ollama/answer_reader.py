"""Reads the lines of an answer of ``POST /api/chat``. No I/O in here."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
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
    parse_arguments,
)
from trunkline_ollama.chat_request import THINKING, VENDOR
from trunkline_ollama.errors import from_stream_error

MAX_LINE = 16_000_000
"""Largest number of bytes of one line. A tool call arrives in one line, with all its arguments."""

MAX_THINKING = 4_000_000
"""Largest number of characters of thinking that are kept for the next request."""

FINISH_REASONS = {"length": "max_tokens"}
"""Finish reasons that differ from the vendor's. An unknown one counts as stop."""

WITHOUT_ANSWER = ("load", "unload")
"""Reasons of a request without messages, which only loads or unloads the model."""


class _CalledFunction(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] | str | None = None


class _CalledTool(msgspec.Struct):
    function: _CalledFunction = msgspec.field(default_factory=_CalledFunction)
    id: str | None = None


class _AnswerPart(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_CalledTool] | None = None


class _AnswerLine(msgspec.Struct):
    """The part of a line that is read."""

    model: str | None = None
    message: _AnswerPart | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


_line = msgspec.json.Decoder(_AnswerLine)


class OllamaAnswerReader:
    """Reads the lines of one answer. ``key`` is removed from every text of an error."""

    def __init__(self, request: ModelRequest, model: str, key: str) -> None:
        self._ids = CallIds(request)
        self._requested = model
        self._model = model
        self._key = key
        self._seen = False
        self._reason: str | None = None
        self._usage = Usage()
        self._thinking: list[str] = []
        self._thought = 0
        self._calls: list[ToolCall] = []

    @property
    def done(self) -> bool:
        """Report whether the answer is complete."""
        return self._reason is not None

    def feed(self, line: bytes) -> Iterator[ModelEvent]:
        """Yield the events of one line.

        Raises:
            ModelError: the line reports a failure.
            msgspec.MsgspecError: the line cannot be read.
        """
        read = _line.decode(line)
        if read.error:
            raise from_stream_error(read.error, self._key, self._requested)
        self._seen = True
        self._model = read.model or self._model
        part = read.message or _AnswerPart()
        if part.thinking:
            self._keep(part.thinking)
            yield Reasoning(part.thinking)
        if part.content:
            yield Text(part.content)
        for call in part.tool_calls or ():
            self._calls.append(self._tool_call(call))
        if read.done:
            self._usage = Usage(input_tokens=read.prompt_eval_count or 0, output_tokens=read.eval_count or 0)
            self._reason = read.done_reason or "stop"

    def finish(self) -> Iterator[ModelEvent]:
        """Yield the block of thinking, the calls and the finish, at the end of the answer.

        Raises:
            ModelError: the stream ended before the answer did, or holds no answer.
        """
        if self._reason is None:
            raise model_error(
                "interrupted" if self._seen else "bad_response",
                "the stream ended before the answer did" if self._seen else "the stream has no line",
            )
        if self._reason in WITHOUT_ANSWER:
            raise model_error("bad_response", f"the server did not answer; it said {self._reason}")
        if self._thinking:
            data = {THINKING: "".join(self._thinking)}
            yield ReasoningDone(ReasoningBlock(vendor=VENDOR, model=self._model, data=data))
        yield from map(Call, self._calls)
        reason = FINISH_REASONS.get(self._reason, "tool_calls" if self._calls else "stop")
        yield Finish(reason=reason, usage=self._usage, model=self._model)

    def _keep(self, thinking: str) -> None:
        self._thought += len(thinking)
        if self._thought <= MAX_THINKING:
            self._thinking.append(thinking)

    def _tool_call(self, call: _CalledTool) -> ToolCall:
        """Return the call. Servers of earlier versions give it no id."""
        given = call.function.arguments
        arguments = parse_arguments(given) if isinstance(given, str) else given or {}
        return ToolCall(id=self._ids.unique(call.id), name=call.function.name, arguments=arguments)


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream of bytes that are not empty.

    A line ends with a line feed only. The line readers of HTTP libraries also split at characters such as U+0085, which
    may occur in the text of an answer.

    Raises:
        ModelError: a line is longer than any answer needs.
    """
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *lines, last = rest.split(b"\n")
            rest = bytearray(last)
            for line in lines:
                if line.strip():
                    yield bytes(line)
        if len(rest) > MAX_LINE:
            raise model_error("bad_response", f"a line of the answer has more than {MAX_LINE} bytes")
    if rest.strip():
        yield bytes(rest)
