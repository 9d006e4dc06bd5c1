"""The bodies of the requests that Trunkline sends: ``{"type": …, "timestamp": …, "data": …}``."""

from datetime import datetime
from typing import Literal

import msgspec


class AnswerData(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request. ``request`` is the id of that request. ``reason`` is how the turn ended: ``stop``,
    ``cancelled``, ``error`` or what else a turn can end with.
    """

    request: str
    thread: str
    conversation: str
    turn: str
    reason: str
    text: str


class NoticeData(msgspec.Struct, frozen=True, kw_only=True):
    """A notice to the owner."""

    text: str


class ApprovalData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call or question that waits for the owner, or was settled: ``allowed`` then says how, and ``text`` by whom."""

    id: str
    block: str
    channel: str
    question: str
    text: str
    expires_at: datetime
    allowed: bool | None = None


EventType = Literal["message.answered", "owner.notice", "approval.requested", "approval.settled"]

EventData = AnswerData | NoticeData | ApprovalData


class WebhookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request. ``timestamp`` is when the delivery began; a repeated request has the same body."""

    type: EventType
    timestamp: datetime
    data: EventData


def encode_event(kind: EventType, began: datetime, data: EventData) -> str:
    """Return the body of a request. Raises nothing."""
    return msgspec.json.encode(WebhookEvent(type=kind, timestamp=began, data=data)).decode()
