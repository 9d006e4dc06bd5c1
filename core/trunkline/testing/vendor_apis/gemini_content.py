"""Gemini's ``generateContent`` and ``streamGenerateContent`` in scripted form."""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from trunkline.testing.script import OVERFLOW, HeardMessage, Refuse, Reply, ScriptedCall, ScriptedRequest
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, WireFormat, calls_of, reason_of, sse

FINISH_REASONS = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "max_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
}

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

SIGNING = ("gemini-3*", "gemini-4*")
"""The models that sign every answer and give function calls an id."""

OVERFLOW_MESSAGE = "The input token count (9) exceeds the maximum number of tokens allowed (8)."


def sign(kind: str, *signed: Any) -> str:
    """Return the signature of a part. It belongs to this content only."""
    digest = hashlib.sha256(json.dumps([kind, *signed], sort_keys=True).encode()).digest()
    return base64.b64encode(digest).decode()


def model_of(path: str) -> str:
    """Return the model in a path such as ``/v1beta/models/MODEL:generateContent``."""
    return path.rpartition("/")[2].partition(":")[0]


def hear_contents(body: dict[str, Any]) -> ScriptedRequest:
    """Parse a request. Each text part of the user and each function response counts as a message of its own."""
    instruction = body.get("systemInstruction") or {}
    lines = [HeardMessage("system", str(part.get("text"))) for part in instruction.get("parts") or ()]
    for content in body.get("contents") or ():
        parts = [part for part in content.get("parts") or () if not part.get("thought")]
        if content.get("role") == "model":
            calls = tuple(str(part["functionCall"].get("name")) for part in parts if "functionCall" in part)
            lines.append(HeardMessage("assistant", "".join(part.get("text", "") for part in parts), calls))
        else:
            lines += _hear_parts(parts)
    declared = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
    return ScriptedRequest(
        lines=tuple(lines), tools=tuple(str(one.get("name")) for one in declared), body=body
    )


class ContentWireFormat(WireFormat):
    """Generated content, streamed as events or whole."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._said = ""
        self._thought_words = 0
        self._unsigned = False
        self._last: dict[str, Any] | None = None
        self._malformed = ""

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        return hear_contents({**request.body, "model": model_of(request.path)})

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return request.path.endswith(":streamGenerateContent")

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        self._said += piece
        self._unsigned = self._unsigned or self._model_is(SIGNING)
        return self._event([{"text": piece}])

    def reasoning(self, piece: str) -> bytes:
        self._thought_words += len(piece.split())
        self._unsigned = True
        return self._event([{"text": piece, "thought": True}])

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        for part in self._call_parts(calls):
            if self._last is not None:
                yield self._event([self._last])
            self._last = part  # the vendor's last event carries the last part and the finish reason

    def stop(self, reason: str) -> bytes:
        if self._malformed:
            ended = {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": self._malformed}
            return self._event(None, **ended)
        return self._event(self._last_parts(), finishReason=FINISH_REASONS[reason])

    def malformed(self) -> bytes:
        return sse('{"candidates": [{"content": {"parts": [{"text"')

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        status = STATUSES.get(refuse.status, "INTERNAL" if refuse.status >= 500 else "INVALID_ARGUMENT")
        message = OVERFLOW_MESSAGE if refuse == OVERFLOW else refuse.message
        error: dict[str, Any] = {"code": refuse.status, "message": message, "status": status}
        if retry := dict(refuse.headers).get("Retry-After"):
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{retry}s"}]
        return {"error": error}

    def whole(self, reply: Reply) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        if thoughts := self.reasoned(reply):
            parts.append({"text": thoughts, "thought": True})
            self._thought_words, self._unsigned = len(thoughts.split()), True
        if said := self.said(reply):
            parts.append({"text": said})
            self.output_words, self._said = len(said.split()), said
            self._unsigned = self._unsigned or self._model_is(SIGNING)
        parts += [*self._call_parts(calls_of(reply)), *(self._last_parts() or ())]
        reason = "MALFORMED_FUNCTION_CALL" if self._malformed else FINISH_REASONS[reason_of(reply)]
        return self._response({"content": {"parts": parts, "role": "model"}, "finishReason": reason})

    def call_id(self, number: int) -> str:
        return f"fc{len(self.heard.lines)}{number}"

    def _call_parts(self, calls: tuple[ScriptedCall, ...]) -> Iterator[dict[str, Any]]:
        """Yield the parts of parallel calls. The first one carries the signature of them all."""
        for number, call in enumerate(calls):
            if not isinstance(call.arguments, dict):
                self._malformed = f"Malformed function call: {call.name}({call.arguments})"
                return
            given: dict[str, Any] = {"name": call.name, "args": call.arguments}
            if self._model_is(SIGNING):
                given["id"] = self.call_id(number)
            self._unsigned = False
            signed = {} if number else {"thoughtSignature": sign("call", call.name, call.arguments)}
            yield {"functionCall": given, **signed}

    def _model_is(self, patterns: Iterable[str]) -> bool:
        return any(fnmatchcase(str(self.heard.body.get("model")), pattern) for pattern in patterns)

    def _last_parts(self) -> list[dict[str, Any]] | None:
        """Return the parts of the last event: the last call, or an empty text with the signature of the answer."""
        if self._last is not None:
            return [self._last]
        if not self._unsigned or not self._said:
            return None
        return [{"text": "", "thoughtSignature": sign("text", "", self._said)}]

    def _event(self, parts: list[dict[str, Any]] | None, **ended: Any) -> bytes:
        content = {"content": {"parts": parts, "role": "model"}} if parts is not None else {}
        return sse(self._response({**content, **ended}))

    def _response(self, candidate: dict[str, Any]) -> dict[str, Any]:
        usage: dict[str, Any] = {
            "promptTokenCount": self.heard.words,
            "candidatesTokenCount": self.output_words,
            "totalTokenCount": self.heard.words + self.output_words + self._thought_words,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": self.heard.words}],
        }
        if self._thought_words:
            usage["thoughtsTokenCount"] = self._thought_words
        if self.heard.again:  # the vendor caches prompts itself
            usage["cachedContentTokenCount"] = self.heard.words // 2
        return {
            "candidates": [{**candidate, "index": 0}],
            "usageMetadata": usage,
            "modelVersion": str(self.heard.body.get("model", "scripted")),
            "responseId": f"response-{self.number}",
        }


def _hear_parts(parts: Iterable[dict[str, Any]]) -> Iterator[HeardMessage]:
    for part in parts:
        if "functionResponse" in part:
            response = part["functionResponse"].get("response") or {}
            yield HeardMessage("tool", str(response.get("output", response.get("error", ""))))
        elif "text" in part:
            yield HeardMessage("user", str(part["text"]))
