"""The contracts PA-F28 and PA-F31, written down a second time and apart from the code: closed, no field too many.

Nothing of the gateway's or the monitor's own shapes is imported, so a change of those cannot change these (ARCH-4).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

CODES: dict[str, int] = {
    "invalid_request": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limited": 429,
    "engine_unavailable": 503,
    "storage_failure": 503,
    "internal": 500,
}
"""The code of every HTTP error, and the one status that goes with it."""

STREAM_CODES = ("provider_error", "tool_error", "context_overflow", "storage_failure")
"""Codes of an ``error`` event. PA-F31 has the first three; the gateway adds PA-F27's failure to store."""

SENTENCES = {
    "invalid_request": "The request is not valid.",
    "unauthorized": "A valid credential is required.",
    "forbidden": "This is not permitted.",
    "not_found": "There is nothing by that name.",
    "too_large": "The message is too large.",
    "engine_unavailable": "The agent is not available right now. Your message was not accepted; try again.",
    "storage_failure": "Storage failed. The message may not have been persisted.",
    "provider_error": "The model provider failed to answer.",
    "tool_error": "A tool failed in a way the turn could not recover from.",
    "context_overflow": "The conversation no longer fits the model's context window.",
}
"""PA-F32: one fixed sentence a code."""


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shape with no room for anything undocumented."""


class Error(Closed, frozen=True, kw_only=True):
    """``metadata`` is the only place for our own fields (conflict C36)."""

    code: str
    message: str
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Line(Closed, frozen=True, kw_only=True):
    id: str
    created_at: datetime
    updated_at: datetime
    title: str | msgspec.UnsetType = msgspec.UNSET
    message_count: int | msgspec.UnsetType = msgspec.UNSET


class Page(Closed, frozen=True, kw_only=True):
    conversations: list[Line]
    total: int
    limit: int
    offset: int


class Said(Closed, frozen=True, kw_only=True):
    id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class Conversation(Closed, frozen=True, kw_only=True):
    id: str
    messages: list[Said]
    created_at: datetime
    updated_at: datetime
    title: str | msgspec.UnsetType = msgspec.UNSET


class SaidOrDone(Said, frozen=True, kw_only=True):
    """With ``include=tools``, which is ours, tool results are shown too."""

    role: Literal["user", "assistant", "tool"]


class WholeConversation(Conversation, frozen=True, kw_only=True):
    block: str
    messages: list[SaidOrDone]


class Tokens(Closed, frozen=True, kw_only=True):
    prompt_tokens: int
    completion_tokens: int


class TextDelta(Closed, frozen=True, kw_only=True):
    content: str


class ToolCall(Closed, frozen=True, kw_only=True):
    id: str
    name: str
    arguments: dict[str, Any]


class ToolOutput(Closed, frozen=True, kw_only=True):
    id: str
    output: str
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class ToolFailure(Closed, frozen=True, kw_only=True):
    id: str
    error: str
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class TextReset(Closed, frozen=True, kw_only=True):
    content: str


class ToolProgress(Closed, frozen=True, kw_only=True):
    id: str
    note: str | msgspec.UnsetType = msgspec.UNSET
    offset: int | msgspec.UnsetType = msgspec.UNSET
    output: str | msgspec.UnsetType = msgspec.UNSET


class Status(Closed, frozen=True, kw_only=True):
    name: str
    data: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET


class ApprovalRequest(Closed, frozen=True, kw_only=True):
    id: str
    name: str
    arguments: dict[str, Any]
    hash: str
    question: str
    approval: str | msgspec.UnsetType = msgspec.UNSET
    asked_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    detail: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class ApprovalSettled(Closed, frozen=True, kw_only=True):
    id: str
    allow: bool
    by: str
    scope: Literal["once", "conversation", "always"] | msgspec.UnsetType = msgspec.UNSET
    answer: str | msgspec.UnsetType = msgspec.UNSET


class LoopDone(Closed, frozen=True, kw_only=True):
    """``done`` of the loop."""

    finish_reason: str
    usage: Tokens


class Done(LoopDone, frozen=True, kw_only=True):
    """``done`` of the gateway, which names the stored message; a turn that ended before the model spoke has none."""

    message_id: str | msgspec.UnsetType = msgspec.UNSET


class EngineMessage(Closed, frozen=True, kw_only=True):
    """A message as the loop is sent it. Calls and their ids are PA-F34's."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: list[ToolCall] | msgspec.UnsetType = msgspec.UNSET
    tool_call_id: str | msgspec.UnsetType = msgspec.UNSET


class EngineMetadata(Closed, frozen=True, kw_only=True):
    correlation_id: str
    conversation_id: str | msgspec.UnsetType = msgspec.UNSET
    trigger: str | msgspec.UnsetType = msgspec.UNSET
    client_context: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class EngineRequest(Closed, frozen=True, kw_only=True):
    messages: list[EngineMessage]
    metadata: EngineMetadata


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One server-sent event whose data has passed the contract."""

    name: str
    id: str
    data: Any


_COMMON: dict[str, tuple[type, ...]] = {
    "text-delta": (TextDelta,),
    "tool-call": (ToolCall,),
    "tool-result": (ToolOutput, ToolFailure),
    "error": (Error,),
}
EXTENSIONS: dict[str, tuple[type, ...]] = {
    "text-reset": (TextReset,),
    "status": (Status,),
    "tool-progress": (ToolProgress,),
    "approval-request": (ApprovalRequest,),
    "approval-settled": (ApprovalSettled,),
}
"""What the gateway adds to PA-F31 and PA-F28: events of its own, which PA's clients pass over (conflict C36)."""

GATEWAY_EVENTS: dict[str, tuple[type, ...]] = {**_COMMON, "done": (Done,), **EXTENSIONS}
LOOP_EVENTS: dict[str, tuple[type, ...]] = {**_COMMON, "done": (LoopDone,)}


def event_of(block: bytes, shapes: dict[str, tuple[type, ...]]) -> Event | None:
    """Parse an event from its lines; None for a keepalive. Raises AssertionError for an event outside of the
    contract."""
    fields: dict[str, str] = {}
    for line in block.decode().split("\n"):
        if line.startswith(":"):
            continue
        name, colon, value = line.partition(":")
        assert colon and name in ("id", "event", "data") and name not in fields, block
        fields[name] = value.removeprefix(" ")
    if not fields:
        return None
    assert fields["event"] in shapes, f"no such event in the contract: {block!r}"
    data = _one_of(fields["data"], shapes[fields["event"]])
    if isinstance(data, Error):
        assert data.code in STREAM_CODES and data.message == SENTENCES[data.code], data
    return Event(name=fields["event"], id=fields.get("id", ""), data=data)


def events_in(stream: bytes, shapes: dict[str, tuple[type, ...]]) -> Iterator[Event]:
    """The events of a whole stream. The last one ends it: it is ``done`` or ``error``, and no other is."""
    blocks = stream.split(b"\n\n")
    assert blocks[-1] == b"", f"cut within an event: {blocks[-1]!r}"
    for block in blocks[:-1]:
        if event := event_of(block, shapes):
            yield event


def error_of(status: int, body: bytes) -> Error:
    """An HTTP error: a known code with its status and its sentence, and nothing else."""
    error = msgspec.json.decode(body, type=Error)
    assert CODES[error.code] == status, (status, error)
    assert error.message == SENTENCES.get(error.code, error.message)
    return error


def _one_of(text: str, shapes: tuple[type, ...]) -> Any:
    for shape in shapes[:-1]:
        try:
            return msgspec.json.decode(text, type=shape)
        except msgspec.ValidationError:
            continue
    return msgspec.json.decode(text, type=shapes[-1])
