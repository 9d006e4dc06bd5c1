"""The events of a turn's feed as envelopes."""

from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UnsetType

from trunkline.contracts.approvals.messages import ApprovalScope
from trunkline.contracts.turns import feed_messages as feed
from trunkline.contracts.turns.lanes import Lane
from trunkline.workers.gateway.http.events import usage_count
from trunkline.workers.gateway.socket.codec import encode_envelope, now
from trunkline.workers.gateway.socket.event_envelopes import (
    ApprovalRequestEnvelope,
    ApprovalRequestPayload,
    ApprovalSettledEnvelope,
    ApprovalSettledPayload,
    ChatEnvelope,
    ChatPayload,
    TextResetEnvelope,
    TextResetPayload,
    ThoughtEnvelope,
    ThoughtPayload,
    ToolCallEnvelope,
    ToolCallPayload,
    ToolProgressEnvelope,
    ToolProgressPayload,
    ToolResultEnvelope,
    ToolResultPayload,
    TurnEndedEnvelope,
    TurnEndedPayload,
)
from trunkline.workers.gateway.socket.server_envelopes import TurnMessage
from trunkline.workers.gateway.socket.status_envelopes import AgentStatus, StatusEnvelope

T = TypeVar("T")


class TurnPlace(NamedTuple):
    """A turn with its block and conversation."""

    block: str
    conversation: str
    turn: str


class FeedEntry(NamedTuple):
    """An event as it is sent: to everybody, and to the owner, who also learns why a turn failed."""

    position: str
    text: str
    text_for_owner: str
    ends: bool

    @property
    def size(self) -> int:
        """The number of characters that the entry holds."""
        return len(self.text) if self.text is self.text_for_owner else 2 * len(self.text)


def feed_entry(place: TurnPlace, position: str, event: feed.FeedEvent, lane: Lane) -> FeedEntry:
    """Return an event as it is sent. It is the same for every socket."""
    envelope = _envelope(place, position, event, lane)
    whole = text = encode_envelope(envelope)
    if isinstance(envelope, TurnEndedEnvelope) and envelope.payload.detail:
        payload = msgspec.structs.replace(envelope.payload, detail="")
        text = encode_envelope(msgspec.structs.replace(envelope, payload=payload))
    return FeedEntry(position, text, whole, isinstance(envelope, TurnEndedEnvelope))


def _envelope(place: TurnPlace, position: str, event: feed.FeedEvent, lane: Lane) -> TurnMessage:
    head: dict[str, Any] = {"id": f"{place.turn}/{position}", "timestamp": now()}
    at: dict[str, Any] = {**place._asdict(), "position": position, "lane": lane}
    match event:
        case feed.TextDelta():
            text = ChatPayload(step=event.step, offset=event.offset, text=event.text, **at)
            return ChatEnvelope(payload=text, **head)
        case feed.MessageSteered(message=message):
            steered = ChatPayload(role="user", text=message.content, message_id=message.id, **at)
            return ChatEnvelope(payload=steered, **head)
        case feed.ReasoningDelta():
            thought = ThoughtPayload(step=event.step, offset=event.offset, text=event.text, **at)
            return ThoughtEnvelope(payload=thought, **head)
        case feed.TextReset(step=step):
            return TextResetEnvelope(payload=TextResetPayload(step=step, **at), **head)
        case feed.StatusShown():
            status = AgentStatus(name=event.name, data=event.data, text=event.text, **at)
            return StatusEnvelope(payload=status, **head)
        case feed.TurnEnded():
            return TurnEndedEnvelope(payload=_ended(event, at), **head)
        case _:
            return _call_envelope(event, at, head)


def _call_envelope(
    event: feed.ToolStarted
    | feed.ToolProgressed
    | feed.ToolEnded
    | feed.ApprovalRequested
    | feed.ApprovalSettled,
    at: dict[str, Any],
    head: dict[str, Any],
) -> TurnMessage:
    match event:
        case feed.ToolStarted(call=call):
            started = ToolCallPayload(
                call=call.id,
                name=call.name,
                arguments=call.arguments,
                step=event.step,
                client=event.client,
                **at,
            )
            return ToolCallEnvelope(payload=started, **head)
        case feed.ToolProgressed():
            progress = ToolProgressPayload(
                call=event.call_id, note=event.note, offset=event.offset, output=event.output, **at
            )
            return ToolProgressEnvelope(payload=progress, **head)
        case feed.ToolEnded():
            result = ToolResultPayload(
                call=event.call_id, name=event.name, output=event.output, error=event.error,
                error_kind=event.error_kind, stored=_or_none(event.stored),
                files=_or_none(event.files) or (), **at,
            )  # fmt: skip
            return ToolResultEnvelope(payload=result, **head)
        case feed.ApprovalRequested(call=call):
            request = ApprovalRequestPayload(
                call=call.id, name=call.name, hash=event.call_hash, question=event.question,
                approval=_or_none(event.id) or "", arguments=call.arguments, asked_at=_or_none(event.asked_at),
                expires_at=_or_none(event.expires_at), detail=_or_none(event.detail), **at,
            )  # fmt: skip
            return ApprovalRequestEnvelope(payload=request, **head)
        case feed.ApprovalSettled():
            scope: ApprovalScope = "once" if isinstance(event.scope, UnsetType) else event.scope
            settled = ApprovalSettledPayload(
                call=event.call_id, approval=_or_none(event.id) or "", allow=event.allow, by=event.by,
                scope=scope, answer=_or_none(event.answer) or "", **at,
            )  # fmt: skip
            return ApprovalSettledEnvelope(payload=settled, **head)


def _ended(event: feed.TurnEnded, at: dict[str, Any]) -> TurnEndedPayload:
    return TurnEndedPayload(
        reason=event.reason, message_id=event.message_id, usage=usage_count(event.usage), code=event.code,
        message=event.sentence or "", detail=event.detail, context=event.context, cost=event.cost,
        answered_by=event.answered_by, **at,
    )  # fmt: skip


def _or_none(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
