"""Ollama's ``POST /api/chat`` and ``POST /api/pull`` in scripted form. Answers are lines of JSON."""

import json
from collections.abc import Iterable
from typing import Any

from trunkline.testing.script import (
    OVERFLOW,
    HeardMessage,
    Raw,
    Refuse,
    Reply,
    Script,
    ScriptedCall,
    ScriptedRequest,
)
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, WireFormat, calls_of, reason_of

CREATED_AT = "2026-01-01T00:00:00.000000Z"

LINES = "application/x-ndjson"

DONE_REASONS = {"stop": "stop", "tool_calls": "stop", "max_tokens": "length", "content_filter": "stop"}
"""The vendor's reasons. It has none for tool calls, and no content filter."""

OVERFLOW_MESSAGE = (
    "the prompt is longer than the context length currently available to the model: 9 tokens, limit 8"
)

UNKNOWN_MODEL = "no-such-model"
"""A model that cannot be pulled."""

PULLED_BYTES = 5_200_000_000


def json_line(data: Any) -> bytes:
    """Encode a value as one line."""
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


class OllamaChatWireFormat(WireFormat):
    """``POST /api/chat``."""

    content_type = LINES

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        body = request.body
        lines = tuple(line for message in body.get("messages") or () for line in _heard(message))
        tools = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
        return ScriptedRequest(lines=lines, tools=tools, body=body)

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return bool(request.body.get("stream", True))

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        return self._part({"content": piece})

    def reasoning(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        return self._part({"content": "", "thinking": piece})

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        """Yield a line for each call. The server parses the arguments itself: a call whose arguments are not JSON is
        text to it.
        """
        for number, call in enumerate(calls):
            if isinstance(call.arguments, str):
                yield self.text(_unparsed(call))
            else:
                yield self._part({"content": "", "tool_calls": [self._call(number, call)]})

    def stop(self, reason: str) -> bytes:
        return json_line({**self._frame({"content": ""}), **self._end(reason)})

    def malformed(self) -> bytes:
        return b'{"model": "scripted", "message": {"role": "assist\n'

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        if refuse == OVERFLOW:
            return {"error": OVERFLOW_MESSAGE}
        if refuse.status == 404:
            return {"error": f"model '{self.heard.body.get('model')}' not found"}
        return {"error": refuse.message}

    def whole(self, reply: Reply) -> dict[str, Any]:
        text, thinking = self.said(reply), self.reasoned(reply)
        self.output_words = len(text.split()) + len(thinking.split())
        calls = [call for call in calls_of(reply) if not isinstance(call.arguments, str)]
        unparsed = "".join(_unparsed(call) for call in calls_of(reply) if isinstance(call.arguments, str))
        part: dict[str, Any] = {"content": text + unparsed}
        if thinking:
            part["thinking"] = thinking
        if calls:
            part["tool_calls"] = [self._call(number, call) for number, call in enumerate(calls)]
        return {**self._frame(part), **self._end(reason_of(reply))}

    def _part(self, part: dict[str, Any]) -> bytes:
        return json_line({**self._frame(part), "done": False})

    def _frame(self, part: dict[str, Any]) -> dict[str, Any]:
        model = str(self.heard.body.get("model", "scripted"))
        return {"model": model, "created_at": CREATED_AT, "message": {"role": "assistant", **part}}

    def _call(self, number: int, call: ScriptedCall) -> dict[str, Any]:
        function = {"index": number, "name": call.name, "arguments": call.arguments}
        return {"id": self.call_id(number), "function": function}

    def _end(self, reason: str) -> dict[str, Any]:
        return {
            "done": True,
            "done_reason": DONE_REASONS[reason],
            "total_duration": 4_883_583_458,
            "load_duration": 1_334_875,
            "prompt_eval_count": self.heard.words,
            "prompt_eval_duration": 342_546_000,
            "eval_count": self.output_words,
            "eval_duration": 4_535_599_000,
        }


class OllamaPullWireFormat(WireFormat):
    """``POST /api/pull``. Every model but ``no-such-model`` is there to be pulled. The script is not asked."""

    content_type = LINES

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        return ScriptedRequest(lines=(), body=request.body)

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return bool(request.body.get("stream", True))

    def reply(self, script: Script) -> Reply:
        return (Raw(b"".join(map(json_line, self._progress()))),)

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        return b""

    def reasoning(self, piece: str) -> bytes:
        return b""

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        return ()

    def stop(self, reason: str) -> bytes:
        return b""

    def whole(self, reply: Reply) -> dict[str, Any]:
        return self._progress()[-1]

    def _progress(self) -> list[dict[str, Any]]:
        if self.heard.body.get("model") == UNKNOWN_MODEL:
            return [{"status": "pulling manifest"}, {"error": "pull model manifest: file does not exist"}]
        digest = "sha256:" + "a" * 64
        loaded = [
            {
                "status": f"pulling {digest[7:19]}",
                "digest": digest,
                "total": PULLED_BYTES,
                "completed": PULLED_BYTES * percent // 100,
            }
            for percent in range(0, 101, 5)
        ]
        ends = ("verifying sha256 digest", "writing manifest", "success")
        return [{"status": "pulling manifest"}, *loaded, *({"status": status} for status in ends)]


def _heard(message: dict[str, Any]) -> Iterable[HeardMessage]:
    """Return the message; for a user's message one for each part, because clients join consecutive messages of one
    role with a blank line.
    """
    role, text = str(message.get("role")), str(message.get("content") or "")
    if role == "user":
        return [HeardMessage(role, part) for part in text.split("\n\n")]
    calls = tuple(str(call["function"]["name"]) for call in message.get("tool_calls") or ())
    return [HeardMessage(role, text, calls)]


def _unparsed(call: ScriptedCall) -> str:
    return f'{{"name": "{call.name}", "arguments": {call.arguments}}}'
