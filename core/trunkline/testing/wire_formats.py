"""The wire formats of scripted answers: Chat Completions, Responses, and the agent loop's ``/engine/chat``.

Requests are decoded to ``ScriptedRequest``, and steps are encoded as server-sent events. This module opens no socket.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trunkline.testing.script import (
    OVERFLOW,
    CallTools,
    HeardMessage,
    Refuse,
    Reply,
    Say,
    Script,
    ScriptedCall,
    ScriptedRequest,
    Stop,
    Think,
    answer_as_agent_loop,
)

_ENGINE_CODES = {400: "invalid_request", 401: "unauthorized", 503: "engine_unavailable"}

FINISH = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


def sse(data: Any, event: str = "") -> bytes:
    """Encode a server-sent event. Text is sent unchanged, any other value as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{f'event: {event}' + chr(10) if event else ''}data: {text}\n\n".encode()


class WireFormat(ABC):
    """The encoder of one answer in one protocol. Each request gets a new instance."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        self.heard = request
        self.number = number
        self.output_words = 0

    @staticmethod
    @abstractmethod
    def hear(body: dict[str, Any]) -> ScriptedRequest:
        """Parse the body of a request."""

    def reply(self, script: Script) -> Reply:
        """Return the script's answer to the request."""
        return script(self.heard)

    @abstractmethod
    def begin(self) -> bytes:
        """Return the bytes before the first event of the answer."""

    @abstractmethod
    def text(self, piece: str) -> bytes: ...

    @abstractmethod
    def reasoning(self, piece: str) -> bytes: ...

    @abstractmethod
    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]: ...

    def ran(self, request: ScriptedCall, output: str) -> bytes:
        """Return the events of a tool that the server has run. Protocols of models have none."""
        return b""

    @abstractmethod
    def stop(self, reason: str) -> bytes: ...

    def malformed(self) -> bytes:
        """Return an event that is not JSON."""
        return sse('{"choices": [{"index": 0, "delta"')

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        """Return the body of an HTTP error."""
        return {"error": {"message": refuse.message, "type": "scripted", "param": None, "code": refuse.code}}

    def failure(self, refuse: Refuse) -> bytes | None:
        """Return an error as an event of the stream; None when the protocol reports it by the HTTP status."""
        return None

    @abstractmethod
    def whole(self, reply: Reply) -> dict[str, Any]:
        """Return the answer as one JSON document, for a request without streaming."""

    def call_id(self, number: int) -> str:
        """Return the id of a tool call. The same conversation always gets the same id."""
        return f"call_{len(self.heard.lines)}_{number}"

    def said(self, reply: Reply) -> str:
        """Return all text of the reply."""
        return "".join(step.text for step in reply if isinstance(step, Say))


class ChatWireFormat(WireFormat):
    """OpenAI Chat Completions."""

    @staticmethod
    def hear(body: dict[str, Any]) -> ScriptedRequest:
        lines = tuple(
            HeardMessage(
                role=str(message.get("role")),
                text=_text_of(message.get("content")),
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
        return self._delta({"content": piece})

    def reasoning(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        return self._delta({"reasoning_content": piece})

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        for index, request in enumerate(calls):
            half = len(request.text) // 2
            head = {"index": index, "id": self.call_id(index), "type": "function"}
            yield self._delta({"tool_calls": [{**head, "function": {"name": request.name, "arguments": ""}}]})
            for part in (request.text[:half], request.text[half:]):
                yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]})

    def stop(self, reason: str) -> bytes:
        usage = b""
        if (self.heard.body.get("stream_options") or {}).get("include_usage"):
            usage = sse({**self._frame("chat.completion.chunk"), "choices": [], "usage": self._usage()})
        return self._delta({}, finish=FINISH[reason]) + usage + sse("[DONE]")

    def whole(self, reply: Reply) -> dict[str, Any]:
        calls = [
            {
                "id": self.call_id(index),
                "type": "function",
                "function": {"name": request.name, "arguments": request.text},
            }
            for index, request in enumerate(_tool_calls(reply))
        ]
        text = self.said(reply)
        self.output_words = len(text.split())
        message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": FINISH[_reason(reply)], "logprobs": None}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage()}

    def _frame(self, kind: str) -> dict[str, Any]:
        model = str(self.heard.body.get("model", "scripted"))
        return {"id": f"chatcmpl-{self.number}", "object": kind, "created": 1_700_000_000, "model": model}

    def _delta(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return sse({**self._frame("chat.completion.chunk"), "choices": [choice]})

    def _usage(self) -> dict[str, Any]:
        given, made = self.heard.words, self.output_words
        return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


class ResponsesWireFormat(WireFormat):
    """OpenAI Responses."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._events = 0
        self._done: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        self._said = ""

    @staticmethod
    def hear(body: dict[str, Any]) -> ScriptedRequest:
        given = body.get("input") or ()
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        lines: list[HeardMessage] = (
            [HeardMessage("system", str(body["instructions"]))] if body.get("instructions") else []
        )
        for item in items:
            _hear_item(lines, item)
        tools = tuple(tool["name"] for tool in body.get("tools") or ())
        return ScriptedRequest(lines=tuple(lines), tools=tools, body=body)

    def begin(self) -> bytes:
        return self._event("response.created", response=self._response("in_progress"))

    def text(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        opened = self._item("message", role="assistant", status="in_progress", content=[])
        if opened:
            part = {"type": "output_text", "text": "", "annotations": []}
            opened += self._event("response.content_part.added", **self._place(content_index=0), part=part)
        self._said += piece
        place = self._place(content_index=0)
        return opened + self._event("response.output_text.delta", **place, delta=piece, logprobs=[])

    def reasoning(self, piece: str) -> bytes:
        self.output_words += len(piece.split())
        opened = self._item("reasoning", summary=[])
        place = self._place(summary_index=0)
        if opened:
            part = {"type": "summary_text", "text": ""}
            opened += self._event("response.reasoning_summary_part.added", **place, part=part)
        self._said += piece
        return opened + self._event("response.reasoning_summary_text.delta", **place, delta=piece)

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        for number, request in enumerate(calls):
            yield self._close()
            yield self._item("function_call", call_id=self.call_id(number), name=request.name, arguments="")
            place = self._place()
            half = len(request.text) // 2
            for part in (request.text[:half], request.text[half:]):
                yield self._event("response.function_call_arguments.delta", **place, delta=part)
            self._open = {**(self._open or {}), "arguments": request.text}
            yield self._event("response.function_call_arguments.done", **place, arguments=request.text)
        yield self._close()

    def stop(self, reason: str) -> bytes:
        closed = self._close()
        cut = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}.get(reason)
        kind = "response.incomplete" if cut else "response.completed"
        details = {"reason": cut} if cut else None
        response = self._response(kind.removeprefix("response."), details)
        return closed + self._event(kind, response=response)

    def malformed(self) -> bytes:
        return sse('{"type": "response.output_text.del', "response.output_text.delta")

    def whole(self, reply: Reply) -> dict[str, Any]:
        for step in reply:
            if isinstance(step, Say):
                self.text(step.text)
            elif isinstance(step, Think):
                self.reasoning(step.text)
        for _ in self.calls(_tool_calls(reply)):
            pass
        return self._response("completed")

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._events += 1
        return sse({"type": kind, "sequence_number": self._events - 1, **fields}, kind)

    def _item(self, kind: str, **fields: Any) -> bytes:
        if self._open is not None and self._open["type"] == kind and kind != "function_call":
            return b""
        closed = self._close()
        self._open = {"id": f"{kind}_{self.number}_{len(self._done)}", "type": kind, **fields}
        return closed + self._event(
            "response.output_item.added", output_index=len(self._done), item=self._open
        )

    def _place(self, **more: int) -> dict[str, Any]:
        return {"item_id": (self._open or {})["id"], "output_index": len(self._done), **more}

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        ended = self._ended(self._open["type"])
        item, self._open, self._said = {**self._open, "status": "completed"}, None, ""
        ended += self._event("response.output_item.done", output_index=len(self._done), item=item)
        self._done.append(item)
        return ended

    def _ended(self, kind: str) -> bytes:
        """Return the events that end the text of the open item, and store the text in the item."""
        if kind == "message":
            place, part = (
                self._place(content_index=0),
                {"type": "output_text", "text": self._said, "annotations": []},
            )
            self._open = {**(self._open or {}), "content": [part]}
            done = self._event("response.output_text.done", **place, text=self._said, logprobs=[])
            return done + self._event("response.content_part.done", **place, part=part)
        if kind == "reasoning":
            place, part = self._place(summary_index=0), {"type": "summary_text", "text": self._said}
            self._open = {**(self._open or {}), "summary": [part]}
            done = self._event("response.reasoning_summary_text.done", **place, text=self._said)
            return done + self._event("response.reasoning_summary_part.done", **place, part=part)
        return b""

    def _response(self, status: str, details: dict[str, str] | None = None) -> dict[str, Any]:
        given, made = self.heard.words, self.output_words
        usage = {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": given + made,
        }
        return {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": None,
            "incomplete_details": details,
            "model": str(self.heard.body.get("model", "scripted")),
            "output": list(self._done),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": self.heard.body.get("tools") or [],
            "usage": None if status == "in_progress" else usage,
        }


class EngineWireFormat(WireFormat):
    """The internal protocol of the agent loop (PA-F31). The server runs the tools."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._ran = 0

    @staticmethod
    def hear(body: dict[str, Any]) -> ScriptedRequest:
        lines = tuple(
            HeardMessage(role=str(m.get("role")), text=_text_of(m.get("content")))
            for m in body.get("messages") or ()
        )
        return ScriptedRequest(lines=lines, body=body)

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


def _tool_calls(reply: Reply) -> tuple[ScriptedCall, ...]:
    return tuple(request for step in reply if isinstance(step, CallTools) for request in step.calls)


def _reason(reply: Reply) -> str:
    return next((step.reason for step in reply if isinstance(step, Stop)), "stop")


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _hear_item(lines: list[HeardMessage], item: dict[str, Any]) -> None:
    """Add one input item. The calls of one answer are separate consecutive items."""
    kind = item.get("type", "message")
    if kind == "function_call":
        last = lines[-1] if lines and lines[-1].role == "assistant" else None
        calls = (*(last.calls if last else ()), str(item["name"]))
        lines[len(lines) - (last is not None) :] = [
            HeardMessage("assistant", last.text if last else "", calls)
        ]
    elif kind == "function_call_output":
        lines.append(HeardMessage("tool", _text_of(item.get("output"))))
    elif kind == "message":
        lines.append(HeardMessage(str(item.get("role")), _text_of(item.get("content"))))
