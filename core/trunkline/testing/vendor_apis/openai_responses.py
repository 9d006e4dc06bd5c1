"""OpenAI's Responses in scripted form."""

from collections.abc import Iterable
from typing import Any

from trunkline.testing.script import HeardMessage, Reply, Say, ScriptedCall, ScriptedRequest, Think
from trunkline.testing.vendor_apis.openai_reasoning_items import ENCRYPTED, sealed
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, WireFormat, calls_of, sse, text_of


class ResponsesWireFormat(WireFormat):
    """OpenAI Responses."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._events = 0
        self._done: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        self._said = ""

    @staticmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        body = request.body
        given = body.get("input") or ()
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        lines: list[HeardMessage] = (
            [HeardMessage("system", str(body["instructions"]))] if body.get("instructions") else []
        )
        for item in items:
            _hear_item(lines, item)
        tools = tuple(tool["name"] for tool in body.get("tools") or () if tool.get("type") == "function")
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

    def ran(self, request: ScriptedCall, output: str) -> bytes:
        given = request.arguments if isinstance(request.arguments, dict) else {}
        item = self._item(
            f"{request.name}_call", status="in_progress", **_hosted(request.name, given, output)
        )
        return item + self._close()

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
        for _ in self.calls(calls_of(reply)):
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
            if ENCRYPTED in (self.heard.body.get("include") or ()):
                self._open["encrypted_content"] = sealed(self._open["id"], self._said)
            done = self._event("response.reasoning_summary_text.done", **place, text=self._said)
            return done + self._event("response.reasoning_summary_part.done", **place, part=part)
        return b""

    def _response(self, status: str, details: dict[str, str] | None = None) -> dict[str, Any]:
        given, made = self.heard.words, self.output_words
        cached = given // 2 if self.heard.again else 0  # the vendor caches prompts itself
        usage = {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
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


def _hosted(name: str, given: dict[str, Any], output: str) -> dict[str, Any]:
    """Return the fields of the item of a hosted tool."""
    match name:
        case "web_search":
            sources = [{"type": "url", "url": output}]
            return {"action": {"type": "search", "query": given.get("query", ""), "sources": sources}}
        case "file_search":
            return {
                "queries": [given.get("query", "")],
                "results": [{"filename": "notes.txt", "text": output}],
            }
        case "code_interpreter":
            outputs = [{"type": "logs", "logs": output}]
            return {"code": given.get("code", ""), "container_id": "cntr_1", "outputs": outputs}
        case _:
            return {"result": output}


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
        lines.append(HeardMessage("tool", text_of(item.get("output"))))
    elif kind == "message":
        lines.append(HeardMessage(str(item.get("role")), text_of(item.get("content"))))
