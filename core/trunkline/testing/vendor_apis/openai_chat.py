"""OpenAI's Chat Completions in scripted form."""

from collections.abc import Iterable
from typing import Any

from trunkline.testing.script import HeardMessage, Reply, ScriptedCall, ScriptedRequest
from trunkline.testing.vendor_apis.openai_reasoning_items import signature
from trunkline.testing.vendor_apis.vendor_api import (
    RecordedRequest,
    WireFormat,
    calls_of,
    reason_of,
    sse,
    text_of,
)

FINISH = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


class ChatWireFormat(WireFormat):
    """OpenAI Chat Completions. A model whose name has a vendor, as OpenRouter's have, signs its reasoning."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._signs = "/" in str(request.body.get("model"))
        self._unsigned = ""

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        body = request.body
        lines = tuple(
            HeardMessage(
                role=str(message.get("role")),
                text=text_of(message.get("content")),
                calls=tuple(call["function"]["name"] for call in message.get("tool_calls") or ()),
            )
            for message in body.get("messages") or ()
        )
        tools = tuple(tool["function"]["name"] for tool in body.get("tools") or ())
        return ScriptedRequest(lines=lines, tools=tools, body=body)

    def begin(self) -> bytes:
        return self._delta({"role": "assistant", "content": ""})

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        return self._signed() + self._delta({"content": piece})

    def reasoning(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        if not self._signs:
            return self._delta({"reasoning_content": piece})
        self._unsigned += piece
        return self._delta({"reasoning": piece, "reasoning_details": [_detail(piece)]})

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        for index, request in enumerate(calls):
            half = len(request.text) // 2
            head = {"index": index, "id": self.call_id(index), "type": "function"}
            yield self._signed()
            yield self._delta({"tool_calls": [{**head, "function": {"name": request.name, "arguments": ""}}]})
            for part in (request.text[:half], request.text[half:]):
                yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]})

    def stop(self, reason: str) -> bytes:
        usage = b""
        if (self.heard.body.get("stream_options") or {}).get("include_usage"):
            usage = sse({**self._frame("chat.completion.chunk"), "choices": [], "usage": self._usage()})
        return self._signed() + self._delta({}, finish=FINISH[reason]) + usage + sse("[DONE]")

    def whole(self, reply: Reply) -> dict[str, Any]:
        calls = [
            {
                "id": self.call_id(index),
                "type": "function",
                "function": {"name": request.name, "arguments": request.text},
            }
            for index, request in enumerate(calls_of(reply))
        ]
        text = self.said(reply)
        self.output_words = len(text.split())
        message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": FINISH[reason_of(reply)], "logprobs": None}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage()}

    def _signed(self) -> bytes:
        """Return the event with the signature of the reasoning so far, if there is any."""
        text, self._unsigned = self._unsigned, ""
        detail = {**_detail(""), "signature": signature(text)}
        return self._delta({"reasoning_details": [detail]}) if text else b""

    def _frame(self, kind: str) -> dict[str, Any]:
        model = str(self.heard.body.get("model", "scripted"))
        return {"id": f"chatcmpl-{self.number}", "object": kind, "created": 1_700_000_000, "model": model}

    def _delta(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return sse({**self._frame("chat.completion.chunk"), "choices": [choice]})

    def _usage(self) -> dict[str, Any]:
        given, made = self.heard.words, self.output_words
        usage = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
        if self.heard.again:  # the vendor caches prompts itself
            return {**usage, "prompt_tokens_details": {"cached_tokens": given // 2}}
        return usage


def _detail(text: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
