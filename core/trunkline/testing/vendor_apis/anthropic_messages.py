"""Anthropic's Messages in scripted form."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from trunkline.testing.script import OVERFLOW, HeardMessage, Refuse, Reply, ScriptedCall, ScriptedRequest
from trunkline.testing.vendor_apis.vendor_api import (
    RecordedRequest,
    WireFormat,
    calls_of,
    reason_of,
    sse,
    text_of,
)

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
}

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def sign(thinking: str) -> str:
    """Return the signature of a block of reasoning. It belongs to this text only."""
    return f"sig_{hashlib.sha256(thinking.encode()).hexdigest()}"


def hear_messages(body: dict[str, Any]) -> ScriptedRequest:
    """Parse a request. Each text block of a user message and each tool result counts as a message of its own."""
    lines = [HeardMessage("system", text) for text in _texts(body.get("system"))]
    for message in body.get("messages") or ():
        content = message.get("content")
        if message.get("role") == "assistant":
            blocks = content if isinstance(content, list) else []
            calls = tuple(str(block.get("name")) for block in blocks if block.get("type") == "tool_use")
            lines.append(HeardMessage("assistant", "".join(_texts(content)), calls))
        else:
            lines += _hear_content(str(message.get("role")), content)
    tools = tuple(str(tool.get("name")) for tool in body.get("tools") or ())
    return ScriptedRequest(lines=tuple(lines), tools=tools, body=body)


class MessagesWireFormat(WireFormat):
    """Anthropic Messages."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._index = -1
        self._open = ""
        self._thinking = ""
        self._thinking_words = 0

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        return hear_messages(request.body)

    def begin(self) -> bytes:
        message = {**self._message([]), "stop_reason": None, "usage": self._usage()}
        return _event("message_start", message=message) + _event("ping")

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        opened = self._begin_block("text", {"type": "text", "text": "", "citations": None})
        return opened + self._delta("text_delta", text=piece)

    def reasoning(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        self._thinking_words += len(piece.split())
        opened = self._begin_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        self._thinking += piece
        return opened + self._delta("thinking_delta", thinking=piece)

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        for number, request in enumerate(calls):
            yield self._end_block()
            block = {"type": "tool_use", "id": self.call_id(number), "name": request.name, "input": {}}
            yield self._begin_block("tool_use", block)
            half = len(request.text) // 2
            for part in ("", request.text[:half], request.text[half:]):
                yield self._delta("input_json_delta", partial_json=part)
        yield self._end_block()

    def stop(self, reason: str) -> bytes:
        delta = {"stop_reason": STOP_REASONS[reason], "stop_sequence": None, "stop_details": None}
        usage = {
            "output_tokens": self.output_words,
            "output_tokens_details": {"thinking_tokens": self._thinking_words},
        }
        ended = _event("message_delta", delta=delta, usage=usage)
        return self._end_block() + ended + _event("message_stop")

    def malformed(self) -> bytes:
        return sse('{"type": "content_block_delta", "index": 0, "delta"', "content_block_delta")

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        kind = ERROR_TYPES.get(
            refuse.status, "api_error" if refuse.status >= 500 else "invalid_request_error"
        )
        message = "prompt is too long: 9 tokens > 8 maximum" if refuse == OVERFLOW else refuse.message
        return {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": f"req_{self.number}",
        }

    def whole(self, reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if thinking := self.reasoned(reply):
            content.append({"type": "thinking", "thinking": thinking, "signature": sign(thinking)})
            self._thinking_words = len(thinking.split())
        if text := self.said(reply):
            content.append({"type": "text", "text": text, "citations": None})
        for number, call in enumerate(calls_of(reply)):
            given = call.arguments if isinstance(call.arguments, dict) else {}
            content.append(
                {"type": "tool_use", "id": self.call_id(number), "name": call.name, "input": given}
            )
        self.output_words = len(text.split()) + self._thinking_words
        reason = STOP_REASONS[reason_of(reply)]
        return {**self._message(content), "stop_reason": reason, "usage": self._usage()}

    def call_id(self, number: int) -> str:
        return f"toolu_{len(self.heard.lines)}_{number}"

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"msg_{self.number}",
            "type": "message",
            "role": "assistant",
            "model": str(self.heard.body.get("model", "scripted")),
            "content": content,
            "stop_sequence": None,
            "stop_details": None,
        }

    def _usage(self) -> dict[str, Any]:
        """Return the counts. With marks half of the input is written to the cache, and read when it is sent again."""
        marked = len(cache_marks(self.heard.body)) > 0
        cached = self.heard.words // 2 if marked else 0
        return {
            "input_tokens": self.heard.words - cached,
            "cache_creation_input_tokens": 0 if self.heard.again else cached,
            "cache_read_input_tokens": cached if self.heard.again else 0,
            "output_tokens": self.output_words,
            "output_tokens_details": {"thinking_tokens": self._thinking_words},
            "service_tier": "standard",
        }

    def _begin_block(self, kind: str, block: dict[str, Any]) -> bytes:
        if self._open == kind and kind != "tool_use":
            return b""
        ended = self._end_block()
        self._index, self._open = self._index + 1, kind
        return ended + _event("content_block_start", index=self._index, content_block=block)

    def _end_block(self) -> bytes:
        if not self._open:
            return b""
        signed = self._delta("signature_delta", signature=sign(self._thinking)) if self._thinking else b""
        self._open = self._thinking = ""
        return signed + _event("content_block_stop", index=self._index)

    def _delta(self, kind: str, **fields: Any) -> bytes:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **fields})


def cache_marks(body: dict[str, Any]) -> list[str]:
    """Return the places of the prompt-cache marks in a request, in the vendor's notation."""
    found: list[str] = []
    for place in ("tools", "system"):
        blocks = body.get(place) if isinstance(body.get(place), list) else []
        found += (
            f"{place}.{number}" for number, block in enumerate(blocks or ()) if "cache_control" in block
        )
    for number, message in enumerate(body.get("messages") or ()):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        found += (
            f"messages.{number}.content.{at}" for at, one in enumerate(blocks) if "cache_control" in one
        )
    return found


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [str(block.get("text")) for block in content or () if block.get("type") == "text"]


def _hear_content(role: str, content: Any) -> Iterator[HeardMessage]:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for block in blocks:
        if block.get("type") == "tool_result":
            yield HeardMessage("tool", text_of(block.get("content")))
        elif block.get("type") == "text":
            yield HeardMessage(role, str(block.get("text")))
