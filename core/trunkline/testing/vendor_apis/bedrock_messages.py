"""Bedrock's Converse and ConverseStream in scripted form."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trunkline.testing.script import OVERFLOW, HeardMessage, Refuse, Reply, ScriptedCall, ScriptedRequest
from trunkline.testing.vendor_apis.event_stream import CONTENT_TYPE, encode_event
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, WireFormat, calls_of, reason_of

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "content_filter": "content_filtered",
}

ERROR_TYPES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
TOO_LONG = "Input is too long for requested model."


def sign_reasoning(text: str) -> str:
    """Return the signature of a block of reasoning. It belongs to this text only."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def hear_converse(body: Mapping[str, Any]) -> ScriptedRequest:
    """Parse a request. Each text block of a user message and each tool result counts as a message of its own."""
    lines = [HeardMessage("system", block["text"]) for block in body.get("system") or () if "text" in block]
    for message in body.get("messages") or ():
        blocks = message.get("content") or ()
        if message.get("role") == "assistant":
            text = "".join(str(block["text"]) for block in blocks if "text" in block)
            calls = tuple(str(block["toolUse"].get("name")) for block in blocks if "toolUse" in block)
            lines.append(HeardMessage("assistant", text, calls))
        else:
            lines += _hear_content(str(message.get("role")), blocks)
    tools = (body.get("toolConfig") or {}).get("tools") or ()
    names = tuple(str(tool["toolSpec"].get("name")) for tool in tools if "toolSpec" in tool)
    return ScriptedRequest(lines=tuple(lines), tools=names, body=dict(body))


class BedrockWireFormat(WireFormat):
    """Bedrock's Converse and ConverseStream."""

    content_type = CONTENT_TYPE

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._index = -1
        self._open = ""
        self._reasoning = ""

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        return hear_converse(request.body)

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return request.path.endswith("/converse-stream")

    def begin(self) -> bytes:
        return encode_event("messageStart", {"role": "assistant", "p": "abcdefgh"})

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        return self._begin_block("text") + self._delta({"text": piece})

    def reasoning(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        opened = self._begin_block("reasoning")
        self._reasoning += piece
        return opened + self._delta({"reasoningContent": {"text": piece}})

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        for number, request in enumerate(calls):
            yield self._end_block()
            self._begin_block("toolUse")
            start = {"toolUse": {"toolUseId": self.call_id(number), "name": request.name}}
            yield encode_event("contentBlockStart", {"start": start, "contentBlockIndex": self._index})
            half = len(request.text) // 2
            for part in ("", request.text[:half], request.text[half:]):
                yield self._delta({"toolUse": {"input": part}})
        yield self._end_block()

    def stop(self, reason: str) -> bytes:
        ended = self._end_block() + encode_event("messageStop", {"stopReason": STOP_REASONS[reason]})
        return ended + encode_event("metadata", {"usage": self._usage(), "metrics": {"latencyMs": 1}})

    def malformed(self) -> bytes:
        return encode_event("contentBlockDelta", b'{"contentBlockIndex": 0, "delta"')

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        other = "InternalServerException" if refuse.status >= 500 else "ValidationException"
        kind = ERROR_TYPES.get(refuse.status, other)
        return {"__type": kind, "message": TOO_LONG if refuse == OVERFLOW else refuse.message}

    def whole(self, reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if reasoned := self.reasoned(reply):
            block = {"text": reasoned, "signature": sign_reasoning(reasoned)}
            content.append({"reasoningContent": {"reasoningText": block}})
        if text := self.said(reply):
            content.append({"text": text})
        for number, call in enumerate(calls_of(reply)):
            given = call.arguments if isinstance(call.arguments, dict) else {}
            content.append(
                {"toolUse": {"toolUseId": self.call_id(number), "name": call.name, "input": given}}
            )
        self.output_words = len(text.split()) + len(reasoned.split())
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": STOP_REASONS[reason_of(reply)],
            "usage": self._usage(),
            "metrics": {"latencyMs": 1},
        }

    def call_id(self, number: int) -> str:
        return f"tooluse_{len(self.heard.lines)}_{number}"

    def _usage(self) -> dict[str, Any]:
        """Return the counts. With cache points half of the input is written to the cache, and read when it is sent
        again.
        """
        cached = self.heard.words // 2 if cache_points(self.heard.body) else 0
        given, made = self.heard.words, self.output_words
        return {
            "inputTokens": given - cached,
            "outputTokens": made,
            "totalTokens": given + made,
            "cacheReadInputTokens": cached if self.heard.again else 0,
            "cacheWriteInputTokens": 0 if self.heard.again else cached,
        }

    def _begin_block(self, kind: str) -> bytes:
        """Begin a block. Only calls have an event for it."""
        if self._open == kind and kind != "toolUse":
            return b""
        ended = self._end_block()
        self._index, self._open = self._index + 1, kind
        return ended

    def _end_block(self) -> bytes:
        if not self._open:
            return b""
        signed = b""
        if self._reasoning:
            signed = self._delta({"reasoningContent": {"signature": sign_reasoning(self._reasoning)}})
        self._open = self._reasoning = ""
        return signed + encode_event("contentBlockStop", {"contentBlockIndex": self._index})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return encode_event(
            "contentBlockDelta", {"delta": delta, "contentBlockIndex": self._index, "p": "abc"}
        )


def cache_points(body: Mapping[str, Any]) -> list[str]:
    """Return the places of the cache points in a request."""
    places = {
        "toolConfig.tools": (body.get("toolConfig") or {}).get("tools") or (),
        "system": body.get("system") or (),
    }
    for number, message in enumerate(body.get("messages") or ()):
        places[f"messages.{number}.content"] = message.get("content") or ()
    return [
        f"{place}.{at}"
        for place, blocks in places.items()
        for at, one in enumerate(blocks)
        if "cachePoint" in one
    ]


def _hear_content(role: str, blocks: Iterable[Mapping[str, Any]]) -> Iterator[HeardMessage]:
    for block in blocks:
        if "toolResult" in block:
            parts = block["toolResult"].get("content") or ()
            yield HeardMessage("tool", "".join(str(part.get("text", "")) for part in parts))
        elif "text" in block:
            yield HeardMessage(role, str(block["text"]))
