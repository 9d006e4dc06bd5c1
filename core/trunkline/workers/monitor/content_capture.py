"""Records the messages of model calls in their spans, by OpenTelemetry's GenAI conventions.

Messages are recorded only with ``[telemetry] capture_content``. Text that looks like a key or a password is redacted.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from opentelemetry import trace

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.models.adapter import AskModel, Call, Finish, ModelEvent, ModelRequest, Text
from trunkline.telemetry import semconv

MAX_MESSAGES_CHARS = 60_000
"""Largest number of characters of the messages in one span, the newest first; spans travel in messages on the
bus, whose size is limited."""

MAX_TEXT_CHARS = 20_000
"""Largest number of characters of one text."""

REDACTION_LOOKAHEAD = 4_096
"""Further characters that the redactor reads, because it does not recognise a key that is cut in two."""

SpanPart = dict[str, Any]


class ContentCapture:
    """Records model requests and answers in the current span."""

    def __init__(self) -> None:
        self._secrets = Redactor()

    def wrap(self, ask: AskModel) -> AskModel:
        """Return the call, extended to record its request and answer in the current span."""

        async def captured(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            span = trace.get_current_span()
            self._record_request(span, request)
            text, calls, reason = "", list[ToolCall](), ""
            try:
                async with aclosing(ask(request)) as events:  # type: ignore[type-var]
                    async for event in events:
                        match event:
                            case Text(piece):
                                text += piece
                            case Call(call):
                                calls.append(call)
                            case Finish():
                                reason = event.reason
                        yield event
            finally:
                answer = {
                    "role": "assistant",
                    "parts": self._message_parts(text, calls),
                    "finish_reason": reason,
                }
                span.set_attribute(semconv.GEN_AI_OUTPUT_MESSAGES, json.dumps([answer], ensure_ascii=False))

        return captured

    def _record_request(self, span: trace.Span, request: ModelRequest) -> None:
        system = [self._text(one.content) for one in request.messages if one.role == "system"]
        messages = [one for one in request.messages if one.role != "system"]
        span.set_attribute(semconv.GEN_AI_SYSTEM_INSTRUCTIONS, json.dumps(system, ensure_ascii=False))
        span.set_attribute(semconv.GEN_AI_INPUT_MESSAGES, self._newest(messages))

    def _newest(self, messages: Sequence[Message]) -> str:
        """Return as many of the messages as fit, the newest ones, as JSON."""
        captured: list[str] = []
        room = MAX_MESSAGES_CHARS
        for message in reversed(messages):
            one = json.dumps({"role": message.role, "parts": self._parts(message)}, ensure_ascii=False)
            room -= len(one)
            if captured and room < 0:
                break
            captured.append(one)
        return f"[{', '.join(reversed(captured))}]"

    def _parts(self, message: Message) -> list[SpanPart]:
        if message.role == "tool":
            answer = {"type": "tool_call_response", "id": message.tool_call_id}
            return [{**answer, "response": self._redact(message.content)}]
        return self._message_parts(message.content, message.tool_calls)

    def _message_parts(self, text: str, calls: Sequence[ToolCall]) -> list[SpanPart]:
        parts = [self._text(text)] if text else []
        return parts + [
            {"type": "tool_call", "id": call.id, "name": call.name, "arguments": self._arguments(call)}
            for call in calls
        ]

    def _arguments(self, call: ToolCall) -> str:
        return self._redact(json.dumps(msgspec.to_builtins(call.arguments), ensure_ascii=False))

    def _text(self, text: str) -> SpanPart:
        return {"type": "text", "content": self._redact(text)}

    def _redact(self, text: str) -> str:
        return self._secrets.redact(text[: MAX_TEXT_CHARS + REDACTION_LOOKAHEAD])[:MAX_TEXT_CHARS]
