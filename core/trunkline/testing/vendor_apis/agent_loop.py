"""The agent loop's protocol in scripted form. The server runs the tools."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trunkline.testing.script import (
    OVERFLOW,
    HeardMessage,
    Refuse,
    Reply,
    Script,
    ScriptedCall,
    ScriptedRequest,
    answer_as_agent_loop,
)
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, VendorApi, WireFormat, sse, text_of

_ENGINE_CODES = {400: "invalid_request", 401: "unauthorized", 503: "engine_unavailable"}


class EngineWireFormat(WireFormat):
    """The internal protocol of the agent loop (PA-F31). The server runs the tools."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._ran = 0

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        body = request.body
        lines = tuple(
            HeardMessage(role=str(m.get("role")), text=text_of(m.get("content")))
            for m in body.get("messages") or ()
        )
        return ScriptedRequest(lines=lines, body=body)

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return bool(request.body.get("stream", True))

    def reply(self, script: Script) -> Reply:
        # The request does not contain the earlier tool results of a message; this stream does.
        said = [number for number, line in enumerate(self.heard.lines) if line.role == "user"]
        lines = self.heard.lines[: said[-1] + 1] if said else self.heard.lines
        return answer_as_agent_loop(script, replace(self.heard, lines=lines))

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Return an error, because this protocol always streams (PA-F33)."""
        return {"code": "invalid_request", "message": "This contract answers in a stream only."}

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        return sse({"content": piece}, "text-delta")

    def reasoning(self, piece: str) -> bytes:
        return b": thinking\n\n"

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        return ()

    def ran(self, request: ScriptedCall, output: str) -> bytes:
        call = f"call_{self._ran}"
        self._ran += 1
        arguments = request.arguments if isinstance(request.arguments, dict) else {"": request.arguments}
        asked = sse({"id": call, "name": request.name, "arguments": arguments}, "tool-call")
        return asked + sse({"id": call, "output": output}, "tool-result")

    def stop(self, reason: str) -> bytes:
        usage = {"prompt_tokens": self.heard.words, "completion_tokens": self.output_words}
        return sse({"finish_reason": reason, "usage": usage}, "done")

    def malformed(self) -> bytes:
        return sse('{"content": "wor', "text-delta")

    def failure(self, refuse: Refuse) -> bytes | None:
        if refuse == OVERFLOW:
            return sse({"code": "context_overflow", "message": refuse.message}, "error")
        if refuse.status in _ENGINE_CODES:
            return None
        return sse({"code": "provider_error", "message": refuse.message}, "error")

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        return {"code": _ENGINE_CODES.get(refuse.status, "internal"), "message": refuse.message}


class AgentLoopApi(VendorApi):
    """An agent loop, ``POST /engine/chat``."""

    vendor = "the agent loop"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        asks = request.method == "POST" and request.path.endswith("/engine/chat")
        return EngineWireFormat if asks else None
