"""The interface of a scripted vendor API. ``ScriptedProvider`` serves the APIs of ``trunkline.testing.vendor_apis``."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from trunkline.testing.script import (
    CallTools,
    Refuse,
    Reply,
    Say,
    Script,
    ScriptedCall,
    ScriptedRequest,
    Stop,
    Think,
)

Outcome = Literal["running", "finished", "broken", "abandoned"]


class RecordedRequest(msgspec.Struct):
    """A received request. ``outcome``: still running, finished, broken by the script, or abandoned by the client.
    ``faults`` are the vendor's rules that it violates. ``query`` is the part of the address after ``?``. ``billed`` are
    the input and output tokens that the vendor bills, both 0 for a refused request; a word is a token.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    outcome: Outcome = "running"
    faults: tuple[str, ...] = ()
    query: str = ""
    billed: tuple[int, int] = (0, 0)


class RuleViolation(NamedTuple):
    """A violated rule. ``param`` names the field in the vendor's notation."""

    param: str
    message: str

    def __str__(self) -> str:
        return f"{self.param}: {self.message}"


class VendorApi(ABC):
    """One vendor's HTTP API: which requests it answers, in which format, and which requests the vendor refuses."""

    vendor: ClassVar[str]
    """The vendor's name in messages."""

    @abstractmethod
    def wire_format(self, request: RecordedRequest) -> "type[WireFormat] | None":
        """Return the format of the answer to this request; None if the request does not ask a model of this vendor."""

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        """Return the JSON document for any other request of this vendor, such as the list of ``models``; None if the
        vendor has no such path.
        """
        return None

    def document_headers(self, request: RecordedRequest) -> Sequence[tuple[str, str]]:
        """Return the headers of the document that answers this request, besides the usual ones."""
        return ()

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        """Return the vendor's rules that a request for an answer violates. ``content`` is the body as received."""
        return ()

    def refusal(self, violation: RuleViolation) -> Any:
        """Return the body of the vendor's answer with status 400 to a request that violates a rule."""
        error = {
            "message": str(violation), "type": "invalid_request_error", "param": violation.param, "code": None,
        }  # fmt: skip
        return {"error": error}


def sse(data: Any, event: str = "") -> bytes:
    """Encode a server-sent event. Text is sent unchanged, any other value as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{f'event: {event}' + chr(10) if event else ''}data: {text}\n\n".encode()


class WireFormat(ABC):
    """The encoder of one answer in one protocol. Each request gets a new instance."""

    content_type: ClassVar[str] = "text/event-stream"
    """The content type of a streamed answer."""

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        self.heard = request
        self.number = number
        self.output_words = 0

    @staticmethod
    @abstractmethod
    def hear(request: RecordedRequest) -> ScriptedRequest:
        """Parse a request."""

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        """Report whether the request asks for a streamed answer."""
        return bool(request.body.get("stream"))

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

    def reasoned(self, reply: Reply) -> str:
        """Return all reasoning of the reply."""
        return "".join(step.text for step in reply if isinstance(step, Think))


def calls_of(reply: Reply) -> tuple[ScriptedCall, ...]:
    """Return the tool calls of the reply."""
    return tuple(request for step in reply if isinstance(step, CallTools) for request in step.calls)


def reason_of(reply: Reply) -> str:
    """Return the finish reason of the reply."""
    return next((step.reason for step in reply if isinstance(step, Stop)), "stop")


def text_of(content: Any) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)
