"""A turn's feed as PA's events. The id of each event is the position to resume from."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

import msgspec
from starlette.requests import Request

from trunkline.contracts.approvals.messages import ApprovalScope
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    StatusShown,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.http.app_state import is_owner
from trunkline.workers.gateway.http.blocking_approvals import BlockingApproval, approval_text
from trunkline.workers.gateway.http.responses import error_body, error_code_for
from trunkline.workers.gateway.http.schemas.event_schemas import (
    ApprovalRequestData,
    ApprovalSettledData,
    DoneData,
    StatusData,
    TextDeltaData,
    TextResetData,
    ToolCallData,
    ToolFailureData,
    ToolOutputData,
    ToolProgressData,
)
from trunkline.workers.gateway.http.schemas.turn_schemas import UsageCount
from trunkline.workers.gateway.http.sse import encode

T = TypeVar("T")


async def encode_events(request: Request, watch: FeedReader) -> AsyncGenerator[bytes, None]:
    """Yield the events of a turn until it ends. A failure of the gateway ends them with ``error``."""
    stream = watch.events()
    try:
        async for event in stream:
            encoded = encode_event(event, watch, with_detail=is_owner(request))
            if encoded:
                yield encoded
    except Exception as error:
        yield encode(error_body(error_code_for(request, error)), event="error")
    finally:
        await stream.aclose()


async def encode_waiting(questions: AsyncGenerator[BlockingApproval, None]) -> AsyncGenerator[bytes, None]:
    """Yield an event for each approval of an earlier turn that blocks this turn. The event has no id, because it is not
    part of this turn."""
    async with aclosing(questions):
        async for question in questions:
            data = {
                "turn": question.turn,
                "approval": msgspec.to_builtins(_approval(question)),
                "decision": question.path,
            }
            yield encode(StatusData(name="waiting", data=data, text=approval_text(question)), event="status")


def encode_event(event: FeedEvent, watch: FeedReader, *, with_detail: bool) -> bytes:
    """Return one event as it is sent, empty for events that PA's clients do not get. With ``with_detail`` it
    also states why the turn failed."""
    match event:
        case TextDelta(text=text):
            return _encode("text-delta", TextDeltaData(content=text), watch)
        case TextReset():
            return _encode("text-reset", TextResetData(content=watch.text), watch)
        case StatusShown():
            status = StatusData(name=event.name, data=event.data, text=event.text)
            return _encode("status", status, watch)
        case ToolStarted(call=call):
            data = ToolCallData(id=call.id, name=call.name, arguments=call.arguments)
            return _encode("tool-call", data, watch)
        case ToolProgressed():
            progress = ToolProgressData(
                id=event.call_id, note=event.note, offset=event.offset, output=event.output
            )
            return _encode("tool-progress", progress, watch)
        case ToolEnded():
            return _encode("tool-result", _result(event), watch)
        case ApprovalRequested():
            return _encode("approval-request", _approval(event), watch)
        case ApprovalSettled():
            return _encode("approval-settled", _settled(event), watch)
        case TurnEnded(code=None):
            return _encode("done", _done(event), watch)
        case TurnEnded(code=ErrorCode() as code, detail=detail):
            return _encode("error", error_body(code, detail=detail if with_detail else ""), watch)
        case _:
            return b""


def usage_count(usage: Usage) -> UsageCount:
    """Return the token counts under PA's names."""
    return UsageCount(prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens)


def _encode(name: str, data: object, watch: FeedReader) -> bytes:
    return encode(data, event=name, id=watch.position)


def _result(event: ToolEnded) -> ToolOutputData | ToolFailureData:
    stored = _or_none(event.stored)
    metadata = {} if stored is None else {"stored": msgspec.to_builtins(stored)}
    if event.files:
        metadata["files"] = msgspec.to_builtins(event.files)
    if event.error:
        return ToolFailureData(id=event.call_id, error=event.output, metadata=metadata)
    return ToolOutputData(id=event.call_id, output=event.output, metadata=metadata)


def _approval(event: ApprovalRequested) -> ApprovalRequestData:
    return ApprovalRequestData(
        id=event.call.id,
        name=event.call.name,
        arguments=event.call.arguments,
        hash=event.call_hash,
        question=event.question,
        approval=_or_none(event.id),
        asked_at=_or_none(event.asked_at),
        expires_at=_or_none(event.expires_at),
        detail=_or_none(event.detail),
    )


def _settled(event: ApprovalSettled) -> ApprovalSettledData:
    scope: ApprovalScope = "once" if isinstance(event.scope, msgspec.UnsetType) else event.scope
    return ApprovalSettledData(
        id=event.call_id, allow=event.allow, by=event.by, scope=scope, answer=_or_none(event.answer) or ""
    )


def _or_none(value: T | msgspec.UnsetType) -> T | None:
    return None if isinstance(value, msgspec.UnsetType) else value


def _done(event: TurnEnded) -> DoneData:
    return DoneData(finish_reason=event.reason, usage=usage_count(event.usage), message_id=event.message_id)
